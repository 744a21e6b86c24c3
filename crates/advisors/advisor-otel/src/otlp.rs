//! Feature `otlp`. `Otlp` and `OtlpGuard`: the exporters, their threads and the runtime that sends; `OtlpError`.

use std::fmt;
use std::time::Duration;

use advisor_core::BoxError;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry::metrics::MeterProvider;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::{Builder, Handle, Runtime};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::{GenAiExporter, GenAiMetrics};

/// The maximum time of a request to the collector.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// The environment variable that names the collector.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The environment variables that name the collector of one signal.
const SIGNAL_ENDPOINTS: [&str; 2] =
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"];

/// Sends traces and metrics to a collector, by OTLP over HTTP with protobuf.
///
/// Unset, the collector and the service's name come from the environment: `OTEL_EXPORTER_OTLP_ENDPOINT`, else
/// `http://localhost:4318`, and `OTEL_SERVICE_NAME`. It speaks `http://` only, to a collector beside the process or in
/// the same network.
#[must_use]
#[derive(Clone, Default)]
pub struct Otlp {
    endpoint: Option<String>,
    service_name: Option<String>,
}

impl Otlp {
    /// Creates settings that leave everything to the environment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the collector's address, such as `http://localhost:4318`. The paths of traces and metrics are added.
    pub fn with_endpoint(self, endpoint: impl Into<String>) -> Self {
        Self { endpoint: Some(endpoint.into()), ..self }
    }

    /// Sets the name of this service.
    pub fn with_service_name(self, name: impl Into<String>) -> Self {
        Self { service_name: Some(name.into()), ..self }
    }

    /// Starts the threads that send, one of them with a runtime for HTTP. They end with the guard.
    ///
    /// # Errors
    /// [`OtlpError::Tls`] for an `https://` address, [`OtlpError::Setup`] for an invalid one.
    pub fn start(self) -> Result<OtlpGuard, OtlpError> {
        if self.addresses(|name| std::env::var(name).ok()).iter().any(|address| needs_tls(address)) {
            return Err(OtlpError::Tls);
        }
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("otlp").enable_all().build();
        let runtime = runtime.map_err(|error| OtlpError::Setup(error.into()))?;
        match self.providers(runtime.handle().clone()) {
            Ok((tracers, meters)) => Ok(OtlpGuard { tracers, meters, runtime: Some(runtime) }),
            Err(error) => {
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    fn providers(&self, runtime: Handle) -> Result<(SdkTracerProvider, SdkMeterProvider), OtlpError> {
        let client = InRuntime { client: HyperClient::with_default_connector(SEND_TIMEOUT, None), runtime };
        let metrics = MetricExporter::builder().with_http().with_http_client(client.clone());
        let metrics = self.at("v1/metrics", metrics).build().map_err(|error| OtlpError::exporter(&error))?;
        let spans = SpanExporter::builder().with_http().with_http_client(client);
        let spans = self.at("v1/traces", spans).build().map_err(|error| OtlpError::exporter(&error))?;
        let resource = self.resource();
        let meters = SdkMeterProvider::builder()
            .with_resource(resource.clone())
            .with_periodic_exporter(metrics)
            .build();
        let tracers = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_span_processor(GenAiMetrics::new(&meters.meter("advisor-chain")))
            .with_batch_exporter(GenAiExporter::new(spans))
            .build();
        Ok((tracers, meters))
    }

    /// Returns the addresses in use: the set one, or else those of the environment.
    fn addresses(&self, env: impl Fn(&str) -> Option<String>) -> Vec<String> {
        if let Some(endpoint) = self.endpoint.clone().filter(|endpoint| !endpoint.is_empty()) {
            return vec![endpoint];
        }
        let filled = |name: &str| env(name).filter(|address| !address.is_empty());
        SIGNAL_ENDPOINTS.iter().filter_map(|name| filled(name).or_else(|| filled(ENDPOINT))).collect()
    }

    fn resource(&self) -> Resource {
        let builder = Resource::builder();
        match &self.service_name {
            Some(name) => builder.with_service_name(name.clone()).build(),
            None => builder.build(),
        }
    }

    /// Sets the address of an exporter, unless it is that of the environment.
    fn at<B: WithExportConfig>(&self, path: &str, exporter: B) -> B {
        match &self.endpoint {
            Some(base) => exporter.with_endpoint(format!("{}/{path}", base.trim_end_matches('/'))),
            None => exporter,
        }
    }
}

/// Shows no address: it may have a password.
impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otlp").field("service_name", &self.service_name).finish_non_exhaustive()
    }
}

/// The running export. Dropped, it sends the rest and stops; keep it until the end of the program.
///
/// # Cancellation
/// A flush and the drop block the thread until the rest is sent: a few seconds at most if no collector answers.
#[derive(Debug)]
#[must_use = "dropping the guard ends the export"]
pub struct OtlpGuard {
    tracers: SdkTracerProvider,
    meters: SdkMeterProvider,
    /// The runtime that sends. `None` once it has stopped.
    runtime: Option<Runtime>,
}

impl OtlpGuard {
    /// Returns the layer that exports the spans, as [`layer`](crate::layer()) does.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        crate::layer(&self.tracers)
    }

    /// Returns the provider of tracers, for spans of your own.
    #[must_use]
    pub fn tracer_provider(&self) -> &SdkTracerProvider {
        &self.tracers
    }

    /// Returns the provider of meters, for metrics of your own.
    #[must_use]
    pub fn meter_provider(&self) -> &SdkMeterProvider {
        &self.meters
    }

    /// Sends what has ended so far.
    ///
    /// # Errors
    /// [`OtlpError::Send`] if the collector did not accept it all.
    pub fn flush(&self) -> Result<(), OtlpError> {
        let (spans, metrics) = (self.tracers.force_flush(), self.meters.force_flush());
        spans.and(metrics).map_err(|error| OtlpError::Send(error.into()))
    }

    /// Sends the rest and stops.
    ///
    /// # Errors
    /// [`OtlpError::Send`] if the collector did not accept it all.
    pub fn shutdown(mut self) -> Result<(), OtlpError> {
        self.stop()
    }

    fn stop(&mut self) -> Result<(), OtlpError> {
        let Some(runtime) = self.runtime.take() else { return Ok(()) };
        let (spans, metrics) = (self.tracers.shutdown(), self.meters.shutdown());
        // The caller may be in a runtime itself, where a wait would panic.
        runtime.shutdown_background();
        spans.and(metrics).map_err(|error| OtlpError::Send(error.into()))
    }
}

impl Drop for OtlpGuard {
    fn drop(&mut self) {
        // No caller is left for an error.
        let _ = self.stop();
    }
}

/// The export cannot start, or not everything was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The address is `https://`.
    #[error(
        "the OTLP exporter has no TLS: use a collector with an http:// address, or another exporter in GenAiExporter"
    )]
    Tls,
    /// A setting is invalid, or the threads cannot start. It does not contain the address.
    #[error("the OTLP exporter cannot start")]
    Setup(#[source] BoxError),
    /// The collector did not accept everything.
    #[error("not all telemetry was sent")]
    Send(#[source] BoxError),
}

impl OtlpError {
    /// Keeps the name of an invalid setting only: its value may have a password.
    fn exporter(error: &ExporterBuildError) -> Self {
        let text = match error {
            ExporterBuildError::InvalidConfiguration(text) => {
                let setting = text.split(':').next().unwrap_or_default();
                format!("the setting `{setting}` is invalid")
            }
            _ => String::from("the exporter cannot be built"),
        };
        Self::Setup(text.into())
    }
}

/// Returns whether an address is `https://`, in letters of any case.
fn needs_tls(address: &str) -> bool {
    address.trim_start().get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
}

/// Sends requests in the guard's runtime. The threads of the SDK have none, and a thread that waits for a flush may be
/// the only one of the caller's.
#[derive(Debug, Clone)]
struct InRuntime {
    client: HyperClient,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for InRuntime {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        self.runtime.spawn(async move { client.send_bytes(request).await }).await?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        let address = match name {
            ENDPOINT => "HTTPS://general",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" => "http://traces",
            _ => "",
        };
        Some(address.to_owned())
    }

    #[test]
    fn only_addresses_in_use_count() {
        let addresses = |otlp: Otlp| otlp.addresses(env);
        assert_eq!(addresses(Otlp::new().with_endpoint("http://here")), ["http://here"]);
        assert_eq!(addresses(Otlp::new()), ["http://traces", "HTTPS://general"]);
        assert!(needs_tls("HTTPS://general") && needs_tls("https://x") && !needs_tls("http://https:"));
    }
}
