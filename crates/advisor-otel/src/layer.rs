//! `layer`: the layer of `tracing-opentelemetry`, without events and without spans of HTTP clients.

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

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
