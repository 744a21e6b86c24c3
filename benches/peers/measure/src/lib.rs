//! Shared work of every client: reading its task, warming up, counting, and reporting the result.
//!
//! A client is a separate program, so that its CPU time and memory are not mixed with those of others. It
//! implements [`Peer`] and calls [`main`]. The driver runs it and reads one line of JSON, a [`Report`].

mod clock;
mod cost;
mod latency;
mod memory;
mod paced;
mod peer;
mod report;
mod scenario;
mod task;
pub mod weather;

pub use clock::monotonic_ns;
pub use memory::{peak_kib, resident_kib};
pub use peer::{Peer, main};
pub use report::{Paced, Report, Stalled, Streamed};
pub use scenario::{Kind, Scenario};
pub use task::{Mode, Task};
