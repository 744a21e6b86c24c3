//! Stores for tests of memory.

mod around;
mod fault;
mod journal;

pub use around::{Around, Asked, StoreAround, Work};
pub use fault::{FaultStore, Faults, StoreFault};
pub use journal::JournalStore;
