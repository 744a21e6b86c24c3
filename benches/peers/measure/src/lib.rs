//! What every client does in the same way: reading its task, warming up, counting, and telling the result.
//!
//! A client is a program of its own, so that its CPU time and its memory are its own. It implements [`Peer`] and
//! calls [`main`]; the driver runs it and reads one line of JSON, a [`Report`].

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
