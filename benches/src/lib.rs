//! The measured work. It begins with all input ready, and repeats one thing a given number of times.
//!
//! `benches/counts.rs` counts its instructions and allocations, `benches/recordings.rs` those of recorded answers, `benches/time.rs` the
//! time. `benches/advisors.rs` counts what each advisor adds.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a benchmark fails by panicking"
)]

#[cfg(feature = "every-advisor")]
pub mod advisors;
mod callgrind;
mod cases;
mod recording;
mod shapes;
mod transport;

pub use callgrind::{instructions, is_required};
pub use cases::{Case, Work, all};
pub use recording::{Recording, Replay};
pub use shapes::Shape;
pub use transport::InMemory;
