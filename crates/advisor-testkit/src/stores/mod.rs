//! Stores for tests of memory.

mod journal;

pub use journal::JournalStore;
