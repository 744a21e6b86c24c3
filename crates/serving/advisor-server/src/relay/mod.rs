//! `TurnRelay`: the contract of a buffer of running turns, shared by the processes of a service.

pub(crate) mod reader;
#[cfg(feature = "redis")]
mod redis;

use std::fmt;
use std::time::Duration;

use advisor_core::{BoxError, ConversationKey, Error, ErrorKind, Text, TurnId, async_trait};

#[cfg(feature = "redis")]
pub use crate::relay::redis::RedisRelay;

/// A buffer of running turns that several processes of one service share.
///
/// The owner of a turn is the process that runs it. It appends the items of the turn; other processes read them, and ask
/// the owner to stop. See [`ChatServer::with_relay`](crate::ChatServer::with_relay).
///
/// An owner renews its turn with each append. One that does not for [`TurnRun::OWNER_TTL`] counts as dead. A turn is kept
/// for [`TurnRun::KEPT_TTL`] after the last append.
///
/// # Ordering
/// A call sees the effects of all calls that ended before it began, in any process.
///
/// # Cancellation
/// A call that is dropped may still take effect. The server drops calls that take too long, and repeats some of them.
///
/// # Errors
/// If the buffer cannot be reached. The effect of the call is unknown then.
#[async_trait]
pub trait TurnRelay: Send + Sync + 'static {
    /// Makes this process the owner of a turn, unless another run of the turn has a live owner or has ended. A run with a
    /// [void end](RunEnd::Void) is replaced.
    ///
    /// The items of an earlier run are removed. Repeated for the same run, it has no further effect.
    async fn begin(&self, run: &TurnRun) -> Result<Begun, RelayError>;

    /// Removes a run whose turn has not started here, so that the turn can begin again. Another run of it stays.
    async fn release(&self, run: &TurnRun) -> Result<(), RelayError>;

    /// Appends items, renews the owner, and keeps the last [`TurnRun::kept_items`].
    ///
    /// Items whose number was appended before are left out, so that a batch can be repeated. The last batch ends the run.
    async fn append(&self, run: &TurnRun, batch: &RunBatch) -> Result<Appended, RelayError>;

    /// Returns the items of a turn from this number on. `None` for an unknown turn.
    ///
    /// A page that has none of them is the end for now. Bound the items and the bytes of a page, such as by 256 and 1 MiB.
    async fn read(
        &self,
        conversation: &ConversationKey,
        turn: &TurnId,
        from: u64,
    ) -> Result<Option<RunPage>, RelayError>;

    /// Returns the turns of a conversation that run, in the order of their beginnings.
    async fn running(&self, conversation: &ConversationKey) -> Result<Vec<TurnId>, RelayError>;

    /// Asks the owner of a turn to stop it. The owner learns of it with its next append.
    async fn stop(&self, conversation: &ConversationKey, turn: &TurnId) -> Result<(), RelayError>;

    /// Removes all turns of a deleted conversation. Their owners lose them.
    async fn forget(&self, conversation: &ConversationKey) -> Result<(), RelayError>;
}

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

/// The reason why a [`TurnRelay`](super::TurnRelay) failed. The server logs it, and no client reads it.
#[derive(Debug)]
pub struct RelayError(BoxError);

impl RelayError {
    /// Creates the error. The reason must have no secret, such as a password in an address, and no content of turns.
    #[must_use]
    pub fn new(reason: impl Into<BoxError>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the relay of turns failed")
    }
}

impl std::error::Error for RelayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

impl From<RelayError> for Error {
    fn from(error: RelayError) -> Self {
        Self::new(ErrorKind::Store, "turns of other processes cannot be reached").with_source(error)
    }
}
