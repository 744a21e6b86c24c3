//! Spans on their way out: `layer` takes them from `tracing`, `GenAiExporter` gives those of a chain (`ChainSpan`) names,
//! kinds, statuses and attributes of the conventions.

use std::borrow::Cow;
use std::time::Duration;

use opentelemetry::trace::{SpanKind, Status, TracerProvider};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::names::{ERROR, OPERATION, REQUEST_MODEL, TOOL_NAME, TOOL_TYPE, translate};

/// Targets of code that sends telemetry. Its own spans would cause further telemetry without end.
const SENDERS: [&str; 6] = ["opentelemetry", "hyper", "h2", "reqwest", "rustls", "tonic"];

/// Returns the layer that turns spans of `tracing` into spans of OpenTelemetry: those of chains and your own.
///
/// It takes spans of level `INFO` and above, and none of HTTP clients, which send the telemetry. Events stay here:
/// those within a span may have texts of errors and messages of servers. For other rules, use the layer of
/// `tracing-opentelemetry` itself.
pub fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S> + Send + Sync + use<S>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let tracer = provider.tracer("advisor-chain");
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false)
        .with_level(false)
        .with_filter(filter_fn(is_wanted))
}

fn is_wanted(metadata: &Metadata<'_>) -> bool {
    let sent_by = |sender: &&str| {
        let rest = metadata.target().strip_prefix(*sender);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', ':']))
    };
    metadata.is_span() && *metadata.level() <= Level::INFO && !SENDERS.iter().any(sent_by)
}

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
/// use advisor_otel::{GenAiExporter, GenAiMetrics};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use opentelemetry::metrics::MeterProvider;
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
/// use tracing_subscriber::layer::SubscriberExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Any exporter of spans and any reader of metrics.
/// let exported = InMemorySpanExporter::default();
/// let meters = SdkMeterProvider::default();
/// let tracers = SdkTracerProvider::builder()
///     .with_simple_exporter(GenAiExporter::new(exported.clone()))
///     .with_span_processor(GenAiMetrics::new(&meters.meter("chat")))
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
}

impl<E: SpanExporter> GenAiExporter<E> {
    /// Creates an exporter in front of `inner`.
    pub fn new(inner: E) -> Self {
        Self { inner }
    }
}

impl<E: SpanExporter> SpanExporter for GenAiExporter<E> {
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        self.inner.export(batch.into_iter().map(translated).collect())
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

/// A span of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainSpan {
    /// A turn: `invoke_agent`.
    Turn,
    /// A round of a turn; the conventions have no such span.
    Round,
    /// A model call: `chat`.
    ModelCall,
    /// A run of a tool: `execute_tool`.
    ToolRun,
}

impl ChainSpan {
    /// Recognises a span of a chain by its name and its operation. Spans of others are `None`.
    pub(crate) fn of(span: &SpanData) -> Option<Self> {
        let operation = attribute(span, OPERATION).map(Value::as_str);
        match (&*span.name, operation.as_deref()) {
            ("turn", Some("invoke_agent")) => Some(Self::Turn),
            ("round", None) if attribute(span, "round").is_some() => Some(Self::Round),
            ("model_call", Some("chat")) => Some(Self::ModelCall),
            ("tool_run", Some("execute_tool")) => Some(Self::ToolRun),
            _ => None,
        }
    }
}

/// Returns the value of an attribute.
pub(crate) fn attribute<'a>(span: &'a SpanData, name: &str) -> Option<&'a Value> {
    span.attributes.iter().find(|attribute| attribute.key.as_str() == name).map(|attribute| &attribute.value)
}

/// Returns the span with the names, kind and status of the conventions, if it belongs to a chain.
fn translated(mut span: SpanData) -> SpanData {
    let Some(chain_span) = ChainSpan::of(&span) else { return span };
    span.name = name(chain_span, &span);
    span.span_kind = match chain_span {
        ChainSpan::ModelCall => SpanKind::Client,
        ChainSpan::Turn | ChainSpan::Round | ChainSpan::ToolRun => SpanKind::Internal,
    };
    // The description stays empty: the text of an error may have content.
    span.status = if attribute(&span, ERROR).is_some() { Status::error("") } else { Status::Unset };
    if chain_span == ChainSpan::ToolRun {
        span.attributes.push(KeyValue::new(TOOL_TYPE, "function"));
    }
    let attributes = std::mem::take(&mut span.attributes);
    span.attributes = attributes.into_iter().map(translate).collect();
    span
}

/// Returns the name: the operation, and its model or tool.
fn name(chain_span: ChainSpan, span: &SpanData) -> Cow<'static, str> {
    let of = |operation: &'static str, attribute_name| match attribute(span, attribute_name) {
        Some(object) => Cow::Owned(format!("{operation} {}", object.as_str())),
        None => Cow::Borrowed(operation),
    };
    match chain_span {
        ChainSpan::Turn => Cow::Borrowed("invoke_agent"),
        ChainSpan::Round => Cow::Borrowed("round"),
        ChainSpan::ModelCall => of("chat", REQUEST_MODEL),
        ChainSpan::ToolRun => of("execute_tool", TOOL_NAME),
    }
}
