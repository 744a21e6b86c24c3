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
