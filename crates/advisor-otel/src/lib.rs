//! Telemetry by OpenTelemetry's conventions for generative AI.
//!
//! A chain opens spans of `tracing` by itself. This crate translates them on their way out:
//!
//! - [`layer`] turns them into spans of OpenTelemetry, together with your own.
//! - [`GenAiExporter`] gives them the names of the [`Conventions`].
//! - [`GenAiMetrics`] makes metrics of them.
//!
//! With the feature `otlp`, `Otlp` sends both to a collector. Nothing of a conversation leaves the process, unless
//! the model is in [`RecordContent`].

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

/// Runs the code of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
