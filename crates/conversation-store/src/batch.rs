//! `Batch`, one atomic append, its idempotency key and the steps in it.

use std::fmt;

use advisor_core::{Text, TurnId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{EntryId, EntryKind, FencingToken, Result, Version};

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
    pub(crate) round: Option<u32>,
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
        self.parent.filter(|parent| parent.as_u64() != version.as_u64() && !self.entries.is_empty())
    }

    /// Checks that any store can read every entry back. For stores that write no bytes; [`Batch::written`] checks
    /// the same.
    ///
    /// # Errors
    /// [`TooDeep`](crate::StoreError::TooDeep) or [`Unreadable`](crate::StoreError::Unreadable).
    pub fn validate(&self) -> Result {
        self.entries.iter().try_for_each(|new| new.kind.validate())
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

    /// Sets the round of a message; other entries have none. See [`Entry::round`](crate::Entry::round).
    #[must_use]
    pub fn with_round(self, round: impl Into<Option<u32>>) -> Self {
        Self { round: round.into().filter(|_| self.kind.as_message().is_some()), ..self }
    }

    /// Returns the round that is stored with the entry.
    #[must_use]
    pub fn round(&self) -> Option<u32> {
        self.round.filter(|_| self.kind.as_message().is_some())
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
        Self::new(turn, 0, BatchStep::Input)
    }
}

impl fmt::Display for BatchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.turn, self.round, self.step)
    }
}

/// The step of a turn that a batch writes. Turn, round and step make up the [key](crate::BatchKey) of the batch.
///
/// Its text is stored: a change of it is a change of format. A store accepts any text of up to 512 bytes; these are the steps that memory
/// and imports write.
///
/// # Example
/// ```
/// use conversation_store::{BatchStep, RoundStep, Version};
///
/// assert_eq!(BatchStep::Input.to_string(), "input");
/// let again = BatchStep::Round { what: RoundStep::Answer, times: 2, resumed_at: Some(Version::new(7)) };
/// assert_eq!(again.to_string(), "answer-2-resumed-7");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BatchStep {
    /// The input of a turn.
    Input,
    /// The input of a turn that was interrupted and resumed at this version.
    Resumed(Version),
    /// A part of a round that became final.
    Round {
        /// The part of the round.
        what: RoundStep,
        /// The number of times this part of the round has been written, from 1.
        times: u32,
        /// The version at which the turn was resumed, if it was interrupted.
        resumed_at: Option<Version>,
    },
    /// The starts of calls that must not run twice. The id is unique each time. If two runs write the same starts,
    /// only one append is acknowledged.
    Starts(Uuid),
    /// The end of an interrupted turn, written on its behalf at this version.
    Closed(Version),
    /// A turn of an imported conversation, by the number of its first entry.
    Imported(u64),
}

/// A part of a round that is written in one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RoundStep {
    /// Messages added to the request of the round.
    Input,
    /// The answer.
    Answer,
    /// The results of its calls.
    Results,
    /// Messages that a hook of the loop added.
    Injected,
    /// The end of the turn.
    End,
}

impl fmt::Display for RoundStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Answer => "answer",
            Self::Results => "results",
            Self::Injected => "injected",
            Self::End => "end",
        })
    }
}

impl fmt::Display for BatchStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input => f.write_str("input"),
            Self::Resumed(version) => write!(f, "resumed-{version}"),
            Self::Round { what, times: 1, resumed_at: None } => what.fmt(f),
            Self::Round { what, times, resumed_at: None } => write!(f, "{what}-{times}"),
            Self::Round { what, times, resumed_at: Some(version) } => {
                write!(f, "{what}-{times}-resumed-{version}")
            }
            Self::Starts(id) => write!(f, "starts-{id}"),
            Self::Closed(version) => write!(f, "closed-{version}"),
            Self::Imported(seq) => write!(f, "import-{seq}"),
        }
    }
}

impl From<BatchStep> for Text {
    fn from(step: BatchStep) -> Self {
        step.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_step_never_changes() {
        let round = |what, times, resumed_at| BatchStep::Round { what, times, resumed_at };
        let at = Version::new(9);
        let table = [
            (BatchStep::Input, "input"),
            (BatchStep::Resumed(at), "resumed-9"),
            (round(RoundStep::Input, 1, None), "input"),
            (round(RoundStep::Answer, 1, None), "answer"),
            (round(RoundStep::Results, 1, None), "results"),
            (round(RoundStep::Injected, 1, None), "injected"),
            (round(RoundStep::End, 1, None), "end"),
            (round(RoundStep::Results, 3, None), "results-3"),
            (round(RoundStep::Answer, 1, Some(at)), "answer-1-resumed-9"),
            (BatchStep::Starts(Uuid::nil()), "starts-00000000-0000-0000-0000-000000000000"),
            (BatchStep::Closed(at), "closed-9"),
            (BatchStep::Imported(4), "import-4"),
        ];
        for (step, text) in table {
            assert_eq!(Text::from(step), *text);
        }
    }
}
