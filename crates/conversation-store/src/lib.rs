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
//! | read range: the part of a log that is read | [`ReadRange`], [`Snapshot`], [`OpenTurn`] |
//!
//! # Features
//! | feature | effect | by default |
//! | --- | --- | --- |
//! | `conformance` | the suite that every store must pass, and the macro that runs it | no |

mod admit;
mod append;
mod append_once;
mod batch_step;
mod branch;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod entry;
mod error;
mod ids;
mod in_memory;
mod lease;
mod log_reader;
mod read;
mod store;
#[cfg(test)]
mod test_logs;
mod timeout;
mod transfer;
mod written_entry;

pub use admit::{Admission, AppliedBatch, LogState, admit};
pub use append::{Batch, BatchKey, NewEntry};
pub use append_once::append_once;
pub use batch_step::{BatchStep, RoundStep};
pub use branch::{BranchIndex, Segment};
pub use entry::summary::Summary;
pub use entry::{Entry, EntryKind};
pub use error::{Result, StoreError};
pub use ids::{EntryId, FencingToken, Version};
pub use in_memory::InMemoryStore;
pub use lease::Leases;
pub use lease::waiting_turns::WaitingTurns;
pub use log_reader::LogReader;
pub use read::{OpenTurn, ReadRange, Snapshot, last_end, same_turn};
pub use store::{ConversationStore, ListOrder, Page, PageStart};
pub use timeout::TimeoutStore;
pub use transfer::export::export;
pub use transfer::import::{ImportError, Imported, import};
pub use written_entry::{TurnEffect, WrittenEntry};
