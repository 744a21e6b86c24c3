//! Telemetry of advisor chains by OpenTelemetry's conventions for generative AI: spans, metrics, and content
//! on request.
//!
#![doc = include_str!("../README.md")]

mod content;
mod metrics;
mod names;
#[cfg(feature = "otlp")]
mod otlp;
mod spans;

pub use content::RecordContent;
pub use metrics::GenAiMetrics;
#[cfg(feature = "otlp")]
pub use otlp::{Otlp, OtlpError, OtlpGuard};
pub use spans::{GenAiExporter, layer};
