use std::fmt;

use advisor_core::{Text, TurnId};
use serde::{Deserialize, Serialize};

use crate::{EntryKind, StoreError};

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
    pub fence: Option<Fence>,
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

/// The version of a conversation: the sequence number of its last entry, 0 if it has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(u64);

/// Names an entry of a conversation by its sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(u64);

/// The number of a lease. It grows with every holder of a conversation, so that one who lost it can be told from its
/// successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(u64);

impl Batch {
    /// A batch of entries, under this key.
    #[must_use]
    pub fn new(key: BatchKey, entries: Vec<NewEntry>) -> Self {
        Self { key, parent: None, fence: None, last_turn: None, entries }
    }

    /// The same batch, following this entry.
    #[must_use]
    pub fn with_parent(self, parent: EntryId) -> Self {
        Self { parent: Some(parent), ..self }
    }

    /// The same batch, behind an entry of this turn.
    #[must_use]
    pub fn with_last_turn(self, turn: TurnId) -> Self {
        Self { last_turn: Some(turn), ..self }
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
    pub fn with_fence(self, fence: Fence) -> Self {
        Self { fence: Some(fence), ..self }
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
    pub fn with_round(self, round: u32) -> Self {
        self.in_round(Some(round))
    }

    pub(crate) fn in_round(self, round: Option<u32>) -> Self {
        Self { round: round.filter(|_| self.kind.as_message().is_some()), ..self }
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
    pub(crate) fn of_input(turn: TurnId) -> Self {
        Self::new(turn, 0, "input")
    }
}

impl Version {
    /// The version of a conversation without entries.
    pub const EMPTY: Self = Self(0);

    /// The version at which the last entry has this sequence number.
    #[must_use]
    pub fn new(seq: u64) -> Self {
        Self(seq)
    }

    /// The sequence number of the last entry.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// The version after so many more entries.
    #[must_use]
    pub fn after(self, entries: usize) -> Self {
        Self(self.0.saturating_add(u64::try_from(entries).unwrap_or(u64::MAX)))
    }
}

impl EntryId {
    /// The place before the first entry.
    pub const BEGINNING: Self = Self(0);

    /// The entry with this sequence number.
    #[must_use]
    pub fn new(seq: u64) -> Self {
        Self(seq)
    }

    /// The sequence number.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.0
    }
}

impl Fence {
    /// The fence with this number.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for BatchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.turn, self.round, self.step)
    }
}
