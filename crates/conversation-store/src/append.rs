use std::fmt;

use advisor_core::{Text, TurnId};
use serde::{Deserialize, Serialize};

use crate::{BatchStep, EntryId, EntryKind, FencingToken, StoreError, Version};

/// Entries that are appended together: all of them or none.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Batch {
    /// Names the batch: the same key is the same batch, and it is applied once.
    pub key: BatchKey,
    /// The entry it follows, where that is not the last one: a branch begins. One that does not exist is
    /// refused as [`NoSuchEntry`](crate::StoreError::NoSuchEntry).
    pub parent: Option<EntryId>,
    /// The fence of the writer's lease, where leases are handed out. A store that has seen a higher one
    /// refuses the batch as [`Fenced`](crate::StoreError::Fenced).
    pub fence: Option<FencingToken>,
    /// The turn of the log's last entry, as the writer knows it. Where that is another one, the conversation was
    /// deleted and begun anew by somebody else, and the batch is refused as [`Gone`](crate::StoreError::Gone).
    pub last_turn: Option<TurnId>,
    /// The entries, in order.
    pub entries: Vec<NewEntry>,
}

/// An entry that has no place in the log yet.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NewEntry {
    /// The turn it belongs to: the one that writes, or an earlier one that it closes.
    pub turn: TurnId,
    /// What it says.
    pub kind: EntryKind,
    pub(crate) round: Option<u32>,
}

/// The name of a batch within its conversation: a turn, a round and a step of it.
///
/// It follows from what is written, never from the time or from a provider's id, so that whoever writes
/// the same thing again names it the same. The starts of calls that must not run twice are the exception: their
/// step has a name that no other run of the turn has, so that of two runs only one is told that it may run them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchKey {
    /// The turn that writes.
    pub turn: TurnId,
    /// The round, or 0.
    pub round: u32,
    /// The step of the round.
    pub step: Text,
}

impl Batch {
    /// A batch of entries, under this key.
    #[must_use]
    pub fn new(key: BatchKey, entries: Vec<NewEntry>) -> Self {
        Self { key, parent: None, fence: None, last_turn: None, entries }
    }

    /// The same batch, following this entry.
    #[must_use]
    pub fn with_parent(self, parent: impl Into<Option<EntryId>>) -> Self {
        Self { parent: parent.into(), ..self }
    }

    /// The same batch, behind an entry of this turn.
    #[must_use]
    pub fn with_last_turn(self, turn: impl Into<Option<TurnId>>) -> Self {
        Self { last_turn: turn.into(), ..self }
    }

    /// What its first entry follows when it is appended at this version, where that is not the last entry: a branch
    /// begins. It is for stores.
    #[must_use]
    pub fn fork_at(&self, version: Version) -> Option<EntryId> {
        self.parent.filter(|parent| parent.as_u64() != version.as_u64() && !self.entries.is_empty())
    }

    /// Checks that every entry can be read back, by any store. [`Batch::written`] does, too; this is for stores that
    /// write no bytes.
    ///
    /// # Errors
    /// [`StoreError::TooDeep`] or [`StoreError::Unreadable`].
    pub fn validate(&self) -> Result<(), StoreError> {
        self.entries.iter().try_for_each(|new| new.kind.validate())
    }

    /// The same batch, written with this fence.
    #[must_use]
    pub fn with_fence(self, fence: impl Into<Option<FencingToken>>) -> Self {
        Self { fence: fence.into(), ..self }
    }
}

impl NewEntry {
    /// An entry of this turn.
    #[must_use]
    pub fn new(turn: TurnId, kind: EntryKind) -> Self {
        Self { turn, kind, round: None }
    }

    /// The same entry of this round, if it is a message; others have none. See [`Entry::round`](crate::Entry::round).
    #[must_use]
    pub fn with_round(self, round: impl Into<Option<u32>>) -> Self {
        Self { round: round.into().filter(|_| self.kind.as_message().is_some()), ..self }
    }

    /// The round it is written with.
    #[must_use]
    pub fn round(&self) -> Option<u32> {
        self.round.filter(|_| self.kind.as_message().is_some())
    }
}

impl PartialEq for NewEntry {
    fn eq(&self, other: &Self) -> bool {
        self.round() == other.round() && self.turn == other.turn && self.kind == other.kind
    }
}

impl BatchKey {
    /// The key of a step of a round of this turn.
    pub fn new(turn: TurnId, round: u32, step: impl Into<Text>) -> Self {
        Self { turn, round, step: step.into() }
    }

    /// The key of what this turn begins with, by which a turn that is submitted again is found.
    #[must_use]
    pub fn for_input(turn: TurnId) -> Self {
        Self::new(turn, 0, BatchStep::Input)
    }
}

impl fmt::Display for BatchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.turn, self.round, self.step)
    }
}
