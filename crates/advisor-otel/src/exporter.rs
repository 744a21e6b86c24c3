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
/// Spans of others pass unchanged, so they stay in the same trace.
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
