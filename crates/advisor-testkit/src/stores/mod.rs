//! Stores for tests of memory.

mod fault;
mod journal;

pub use fault::{FaultStore, StoreFault};
pub use journal::JournalStore;
