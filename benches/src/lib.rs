//! What is measured: work that begins where everything is there, and does one thing so often.
//!
//! `benches/counts.rs` counts its instructions and allocations, `benches/time.rs` its time.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a benchmark fails by panicking")]

mod cases;
mod shapes;
mod transport;

pub use cases::{Case, Work, all};
pub use shapes::Shape;
pub use transport::InMemory;
