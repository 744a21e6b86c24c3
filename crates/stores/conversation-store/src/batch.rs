//! `Batch`, one atomic append, and its idempotency key.

use std::fmt;

use advisor_core::{Text, TurnId};
use serde::{Deserialize, Serialize};

use crate::{EntryId, EntryKind, FencingToken, Version};

/// Entries that are appended together: all of them or none.
#[must_use]
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Batch {
    /// The idempotency key. A batch with the same key is the same batch, and is applied once.
    pub key: BatchKey,
    /// The entry that the first entry follows, if that is not the last one; the batch then starts a branch. A
    /// parent that does not exist is refused as [`NoSuchEntry`](crate::StoreError::NoSuchEntry).
    pub parent: Option<EntryId>,
    /// The fencing token of the writer's lease, if it has one. If a higher one was issued for the conversation or
    /// written with, the batch is refused as [`Fenced`](crate::StoreError::Fenced). A deletion does not change that.
    pub token: Option<FencingToken>,
    /// The turn of the log's last entry, as the writer knows it. Another turn means that another writer deleted
    /// the conversation and started it again; the batch is refused as [`Gone`](crate::StoreError::Gone).
    pub last_turn: Option<TurnId>,
    /// The entries, in order. A batch without entries is checked, and changes nothing.
    pub entries: Vec<NewEntry>,
}

/// An entry that has no sequence number yet.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NewEntry {
    /// The turn it belongs to: the writing turn, or an earlier one that it closes.
    pub turn: TurnId,
    /// The content.
    pub kind: EntryKind,
    /// The round of a message; other entries have none. See [`Entry::round`](crate::Entry::round).
    pub round: Option<u32>,
}

/// The name of a batch within its conversation: turn, round and step.
///
/// It is derived from the content, never from the time or a provider's id, so that a retry produces the same key.
/// The starts of calls that must not run twice are the exception. Their step is unique for each run of the turn,
/// so that the store acknowledges only one of two runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchKey {
    /// The writing turn.
    pub turn: TurnId,
    /// The round, or 0 outside rounds.
    pub round: u32,
    /// The step of the round, as text: at most 512 bytes, if any store is to take it.
    pub step: Text,
}

impl Batch {
    /// Creates a batch of entries under this key.
    pub fn new(key: BatchKey, entries: Vec<NewEntry>) -> Self {
        Self { key, parent: None, token: None, last_turn: None, entries }
    }

    /// Sets the entry that the batch follows.
    pub fn with_parent(self, parent: impl Into<Option<EntryId>>) -> Self {
        Self { parent: parent.into(), ..self }
    }

    /// Sets the turn that the log's last entry must belong to.
    pub fn with_last_turn(self, turn: impl Into<Option<TurnId>>) -> Self {
        Self { last_turn: turn.into(), ..self }
    }

    /// Returns the parent of the first entry if the batch, appended at this version, starts a branch. For store
    /// implementations.
    #[must_use]
    pub fn fork_at(&self, version: Version) -> Option<EntryId> {
        self.parent.filter(|parent| parent.0 != version.0 && !self.entries.is_empty())
    }

    /// Sets the fencing token.
    pub fn with_token(self, token: impl Into<Option<FencingToken>>) -> Self {
        Self { token: token.into(), ..self }
    }
}

impl NewEntry {
    /// Creates an entry of this turn.
    #[must_use]
    pub fn new(turn: TurnId, kind: EntryKind) -> Self {
        Self { turn, kind, round: None }
    }

    /// Sets the round, if it is a message.
    #[must_use]
    pub fn with_round(self, round: impl Into<Option<u32>>) -> Self {
        Self { round: round.into().filter(|_| self.kind.as_message().is_some()), ..self }
    }
}

impl BatchKey {
    /// Creates the key of a step of a round of this turn.
    pub fn new(turn: TurnId, round: u32, step: impl Into<Text>) -> Self {
        Self { turn, round, step: step.into() }
    }

    /// Creates the key of the turn's input. A turn that is submitted again is recognised by it.
    #[must_use]
    pub fn for_input(turn: TurnId) -> Self {
        Self::new(turn, 0, "input")
    }
}

/// Turn, round and step, with `/` between. Turn ids contain no `/`, so the text of a key is unique.
impl fmt::Display for BatchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.turn, self.round, self.step)
    }
}
