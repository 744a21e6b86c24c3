use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};

use crate::{FencingToken, StoreError};

/// Hands out leases: the right of a turn to run in a conversation, among all processes that share a store.
///
/// A lease lasts for a time, so that a turn that was killed can be told from one that runs. Whoever is given
/// one gets a [`FencingToken`], which is higher than all before it in that conversation. A lease saves wasted work;
/// that two turns never write at once is the version's doing.
///
/// # Ordering
/// - At most one turn holds a conversation at a time. Time is the store's own, never the asker's.
/// - From the moment a fence is handed out, an [`append`](crate::ConversationStore::append) with a lower one
///   is refused as [`StoreError::Fenced`].
/// - A lease whose time is over, and that nobody else was given since, is still good: it can be written with
///   and renewed.
/// - A conversation need not exist to be held and is not made by it. A lease outlives the deletion of its
///   conversation.
///
/// # Cancellation
/// A dropped `acquire` may leave the conversation held until the time is over.
///
/// # Errors
/// [`StoreError::Locked`] if the conversation is held; [`StoreError::Fenced`] if the lease has passed on.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use advisor_core::{ConversationKey, TurnId};
/// use conversation_store::{ConversationStore, InMemoryStore, StoreError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = InMemoryStore::new().with_leases();
/// let leases = store.leases().ok_or("this store hands out leases")?;
/// let (key, minute) = (ConversationKey::new("c1")?, Duration::from_secs(60));
/// let fence = leases.acquire(&key, &TurnId::new("one")?, minute, None).await?;
/// let refused = leases.acquire(&key, &TurnId::new("two")?, minute, None).await;
/// assert!(matches!(refused, Err(StoreError::Locked { .. })));
/// leases.release(&key, fence).await?;
/// leases.acquire(&key, &TurnId::new("two")?, minute, None).await?;
/// # Ok(()) }
/// ```
#[async_trait]
pub trait Leases: Send + Sync + 'static {
    /// Takes the conversation for a turn and for so long, if it is free, or held with the fence `takeover_from`:
    /// one's own of an earlier turn, or that of a turn that is to be interrupted.
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        time: Duration,
        takeover_from: Option<FencingToken>,
    ) -> Result<FencingToken, StoreError>;

    /// Holds the conversation for so long from now on, also if the time is over or the lease was released.
    async fn renew(
        &self,
        key: &ConversationKey,
        fence: FencingToken,
        time: Duration,
    ) -> Result<(), StoreError>;

    /// Gives the conversation back. If the lease has passed on, there is nothing to be done.
    async fn release(&self, key: &ConversationKey, fence: FencingToken) -> Result<(), StoreError>;
}
