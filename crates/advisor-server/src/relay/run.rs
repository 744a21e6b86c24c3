//! `TurnRun`, `RunBatch`, `RunPage` and the outcomes of the relay's calls.

use std::time::Duration;

use advisor_core::{ConversationKey, Text, TurnId};

/// One run of a turn in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnRun {
    /// The conversation, with its tenant.
    pub conversation: ConversationKey,
    /// The turn.
    pub turn: TurnId,
    /// The id of the run. A turn that runs again, after its process died, has another one.
    pub id: Text,
    /// The digest of the input, by which a repeated request is recognised.
    pub input: Text,
    /// The number of items that are kept, at most. The oldest go first.
    pub kept_items: usize,
}

impl TurnRun {
    /// The time for which an owner counts as alive after an append.
    pub const OWNER_TTL: Duration = Duration::from_secs(10);

    /// The time for which a turn is kept after the last append.
    pub const KEPT_TTL: Duration = Duration::from_secs(300);

    /// Creates a run with a new id.
    #[must_use]
    pub fn new(
        conversation: ConversationKey,
        turn: TurnId,
        input: impl Into<Text>,
        kept_items: usize,
    ) -> Self {
        let id = TurnId::random().as_str().into();
        Self { conversation, turn, id, input: input.into(), kept_items }
    }
}

/// Consecutive items of a run.
///
/// An item is a [`StreamItem`](advisor_core::StreamItem) in JSON. Item 0 is the begin, item 1 the first chunk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunBatch {
    /// The number of the first item.
    pub first: u64,
    /// The items. A batch without items only renews the owner.
    pub items: Vec<String>,
    /// The end of the run, if this batch is the last one.
    pub end: Option<RunEnd>,
}

/// The end of a run, for those who submit its turn again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a run has no other end")]
pub enum RunEnd {
    /// The turn is read again.
    Final,
    /// The turn has no outcome: it was stopped because its client had disconnected, its failure invites a retry, or
    /// memory never had it. It can [begin](super::TurnRelay::begin) again.
    Void,
}

/// The outcome of [`begin`](super::TurnRelay::begin).
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a relay has no other outcome")]
pub enum Begun {
    /// This process owns the run.
    Owned,
    /// Another run has a live owner, or has a final end.
    Elsewhere {
        /// The digest of its input.
        input: Text,
    },
}

/// The outcome of [`append`](super::TurnRelay::append).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a relay has no other outcome")]
pub enum Appended {
    /// The run continues.
    Running,
    /// The run continues, and was asked to [stop](super::TurnRelay::stop).
    StopRequested,
    /// The run is unknown: it was forgotten, or another run has replaced it. Nothing was appended.
    Lost,
}

/// Items of a turn, and its state after all of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunPage {
    /// The [id of the run](TurnRun::id).
    pub run: Text,
    /// The items with their numbers, in their order. None if there are none yet, or none any more.
    pub items: Vec<(u64, String)>,
    /// The state of the run.
    pub state: RunState,
}

impl RunPage {
    /// Creates a page.
    #[must_use]
    pub fn new(run: impl Into<Text>, items: Vec<(u64, String)>, state: RunState) -> Self {
        Self { run: run.into(), items, state }
    }
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a run has no other state")]
pub enum RunState {
    /// Its owner is alive.
    Running,
    /// It has ended, and all of its items were appended.
    Ended,
    /// Its owner has died before the end.
    Interrupted,
}
