//! The contract of a store for conversations, and a store in memory.
//!
//! A conversation is a log of [`Entry`]s that is only ever appended to. [`ConversationStore`] is the contract,
//! [`InMemoryStore`] keeps it in this process; stores in databases have crates of their own. Nothing here knows a turn
//! that runs: who may write is decided by [versions](Version), [leases](Leases) and [fences](FencingToken).
//!
//! # Example
//! ```
//! use advisor_core::{ConversationKey, Message, TurnId};
//! use conversation_store::{
//!     Batch, BatchKey, ConversationStore, EntryKind, InMemoryStore, NewEntry, StoreError, Version, ReadRange,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = InMemoryStore::new();
//! let (key, turn) = (ConversationKey::new("c1")?, TurnId::mint());
//! let said = NewEntry::new(turn.clone(), EntryKind::Message(Message::user("Is it?")));
//! let batch = Batch::new(BatchKey::new(turn, 0, "input"), vec![said]);
//!
//! let version = store.append(&key, Version::EMPTY, batch.clone()).await?;
//! assert_eq!(store.append(&key, Version::EMPTY, batch).await?, version, "it is written once");
//! assert_eq!(store.load(&key, ReadRange::LastTurns(1)).await?.entries.len(), 1);
//! # Ok(()) }
//! ```
//!
//! # Words
//! | word | type |
//! | --- | --- |
//! | conversation: a transcript with an id, in a store | [`ConversationStore`], [`InMemoryStore`] |
//! | entry: a message, the start of a call, the end of a turn, or a summary, with its place in the log | [`Entry`], [`EntryKind`] |
//! | batch: entries that are appended together, once | [`Batch`], [`BatchKey`], [`Version`] |
//! | branch: the path from its last entry back through parents | [`EntryId`], [`BranchIndex`] |
//! | lease: a turn holds its conversation, among processes; its number, the fence, is checked inside each append | [`Leases`], [`FencingToken`] |
//! | view: what is read of a log | [`ReadRange`], [`Snapshot`], [`OpenTurn`] |
//!
//! # Features
//! | feature | what it brings | by default |
//! | --- | --- | --- |
//! | `conformance` | the suite that every store must pass, and the macro that runs it | no |

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

pub use append::{Batch, BatchKey, NewEntry};
pub use append_once::append_once;
pub use batch_step::{BatchStep, RoundStep};
pub use branch::{BranchIndex, Segment};
pub use entry::summary::Summary;
pub use entry::{Entry, EntryKind};
pub use error::StoreError;
pub use ids::{EntryId, FencingToken, Version};
pub use in_memory::InMemoryStore;
pub use lease::Leases;
pub use log_reader::LogReader;
pub use read::{OpenTurn, ReadRange, Snapshot, last_end, same_turn};
pub use store::{ConversationStore, Page};
pub use timeout::TimeoutStore;
pub use transfer::export::export;
pub use transfer::import::{ImportError, Imported, import};
pub use written_entry::WrittenEntry;

/// The README's examples are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
