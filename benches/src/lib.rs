//! What is measured: work that begins where everything is there, and does one thing so often.
//!
//! `benches/counts.rs` counts its instructions and allocations, `benches/recordings.rs` those of recorded answers, `benches/time.rs` the
//! time.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a benchmark fails by panicking")]

mod cases;
mod recording;
mod shapes;
mod transport;

pub use cases::{Case, Work, all};
pub use recording::{Recording, Replay};
pub use shapes::Shape;
pub use transport::InMemory;
