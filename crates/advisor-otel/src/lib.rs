#![doc = include_str!("../README.md")]

mod bounded;
mod content;
mod conventions;
mod exporter;
mod layer;
mod metrics;
mod names;
#[cfg(feature = "otlp")]
mod otlp;
mod providers;
mod spans;

pub use content::RecordContent;
pub use conventions::Conventions;
pub use exporter::GenAiExporter;
pub use layer::layer;
pub use metrics::GenAiMetrics;
#[cfg(feature = "otlp")]
pub use otlp::{Otlp, OtlpError, OtlpGuard};
