//! `GenAiExporter`: translates spans in front of another exporter.

use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use crate::Conventions;
use crate::spans::translated;

/// An exporter that gives the spans of a chain the names, kinds and statuses of the conventions, and passes all
/// spans on to another exporter.
///
/// Spans of others pass unchanged, so they stay in the same trace. Spans end in the order of the turn: a model call, its
/// round, the tools of the round, the next round, the turn.
///
/// | span | in | name, kind |
/// | --- | --- | --- |
/// | a turn | your own span | `invoke_agent`, internal |
/// | a round | its turn | `round`, internal; the conventions have none |
/// | a model call | its round | `chat MODEL`, client |
/// | a run of a tool | its turn | `execute_tool NAME`, internal |
///
/// - A model call has the request's parameters, the model, finish reasons, tokens and the time to the first chunk. A turn
///   has the tokens of all its rounds, and of rejected answers whose advisor adds them
///   ([`ChatResponse::with_added_usage`](advisor_core::ChatResponse::with_added_usage)).
/// - A failed span has `error.type`, one word. A dropped turn has no finish reason and no error.
/// - A turn has `advisor.turn.id`, a round `advisor.round`, and a model call `advisor.model_call`. After a retry or a
///   correction, one round has several calls. The number of the call is the round of its chunks.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_otel::{Conventions, GenAiExporter, GenAiMetrics};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use opentelemetry::metrics::MeterProvider;
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
/// use tracing_subscriber::layer::SubscriberExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let conventions = Conventions::default();
/// // Any exporter of spans and any reader of metrics.
/// let exported = InMemorySpanExporter::default();
/// let meters = SdkMeterProvider::default();
/// let tracers = SdkTracerProvider::builder()
///     .with_simple_exporter(GenAiExporter::new(exported.clone(), conventions))
///     .with_span_processor(GenAiMetrics::new(&meters.meter("chat"), conventions))
///     .build();
/// let subscriber = tracing_subscriber::registry().with(advisor_otel::layer(&tracers));
/// let _listening = tracing::subscriber::set_default(subscriber);
///
/// let model = ScriptedModel::new([Answer::from_text("Hello.")]);
/// let client = ChatClient::builder(model).build()?;
/// client.prompt().user("Hi").conversation("c1").call().await?;
///
/// let names: Vec<_> = exported.get_finished_spans()?.iter().map(|span| span.name.clone()).collect();
/// assert_eq!(names, ["chat", "invoke_agent"]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct GenAiExporter<E> {
    inner: E,
    conventions: Conventions,
}

impl<E: SpanExporter> GenAiExporter<E> {
    /// Creates an exporter in front of `inner`.
    pub fn new(inner: E, conventions: Conventions) -> Self {
        Self { inner, conventions }
    }
}

impl<E: SpanExporter> SpanExporter for GenAiExporter<E> {
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        self.inner.export(batch.into_iter().map(|span| translated(span, self.conventions)).collect())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
