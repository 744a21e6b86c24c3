//! The contract of a store for conversations: an append-only log with versions, branches and leases, and a
//! store in memory.
//!
#![doc = include_str!("../README.md")]
//!
//! # Words
//! | word | type |
//! | --- | --- |
//! | conversation: a transcript with an id, in a store | [`ConversationStore`], [`InMemoryStore`] |
//! | entry: one numbered record of the log, such as a message or the end of a turn | [`Entry`], [`EntryKind`] |
//! | batch: entries that are appended together, once | [`Batch`], [`BatchKey`], [`Version`] |
//! | branch: the path from its last entry back through parents | [`EntryId`], [`BranchIndex`] |
//! | lease: the right of one turn to run in a conversation, across processes | [`Leases`] |
//! | fencing token: the number of a lease, checked inside each append | [`FencingToken`] |
//! | read range: the part of a log that is read | [`ReadRange`], [`Snapshot`] |

mod admit;
mod batch;
mod branch;
mod codec;
mod entry;
mod error;
mod in_memory;
mod lease;
mod read;
mod rows;
mod store;
#[cfg(test)]
mod tests;
mod transfer;

pub use admit::{Admission, AppliedBatch, LogState, admit};
pub use batch::{Batch, BatchKey, NewEntry};
pub use branch::{BranchIndex, Segment};
pub use entry::{Entry, EntryId, EntryKind, FencingToken, Summary, Version};
pub use error::{Result, StoreError};
pub use in_memory::InMemoryStore;
pub use lease::Leases;
pub use read::{ReadRange, Snapshot, last_end, same_turn};
pub use rows::{LogReader, TurnEffect, WrittenEntry};
pub use store::{ConversationStore, ListOrder, Page};
pub use transfer::{ImportError, Imported, export, import};
