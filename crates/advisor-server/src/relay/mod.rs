//! `TurnRelay`: the contract of a buffer of running turns, shared by the processes of a service.

mod error;
mod in_memory;
pub(crate) mod link;
pub(crate) mod reader;
#[cfg(feature = "redis")]
mod redis;
mod run;

use advisor_core::{ConversationKey, TurnId, async_trait};

pub use self::error::RelayError;
pub use self::in_memory::InMemoryRelay;
#[cfg(feature = "redis")]
pub use self::redis::RedisRelay;
pub use self::run::{Appended, Begun, RunBatch, RunEnd, RunPage, RunState, TurnRun};

/// The items and bytes of a page, at most. One item may be larger.
const PAGE_ITEMS: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

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
