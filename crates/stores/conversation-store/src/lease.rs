//! `Leases`: acquire, renew and release the right to run a turn, with a fencing token.

use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};

use crate::{FencingToken, Result, StoreError};

/// Hands out leases: the right of a turn to run in a conversation, across all processes that share a store.
///
/// A lease expires, so that a killed turn can be distinguished from a running one. The holder gets a
/// [`FencingToken`] that is higher than all earlier ones of that conversation. A lease only saves wasted work:
/// versions ensure that two turns never write at once.
///
/// # Ordering
/// - At most one turn holds a conversation at a time. Expiry is measured by the store's clock, never the caller's.
/// - As soon as a token is issued, an [`append`](crate::ConversationStore::append) with a lower one is refused as
///   [`Fenced`](crate::StoreError::Fenced). This holds for ever: after the lease has ended, and after the
///   conversation was deleted. So a store keeps the highest token of each conversation.
/// - An expired lease remains valid for appends and renewal until another turn acquires the conversation.
/// - Turns that wait get the lease in the order in which they came,
///   across all processes. No other request is granted a free lease before them. A takeover passes them, but none
///   that has waited for ten seconds.
/// - A conversation need not exist to be leased, and a lease does not create it. A lease outlives the deletion of
///   its conversation.
///
/// # Cancellation
/// A dropped `acquire` may leave the conversation held until the lease expires.
///
/// # Errors
/// - [`Locked`](crate::StoreError::Locked) if another lease holds the conversation, or another turn waits for it.
/// - [`Fenced`](crate::StoreError::Fenced) if another turn has acquired it since.
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
/// let token = leases.acquire(&key, &TurnId::new("one")?, minute, None, false).await?;
/// let refused = leases.acquire(&key, &TurnId::new("two")?, minute, None, false).await;
/// assert!(matches!(refused, Err(StoreError::Locked { .. })));
/// leases.release(&key, token).await?;
/// leases.acquire(&key, &TurnId::new("two")?, minute, None, false).await?;
/// # Ok(()) }
/// ```
#[async_trait]
pub trait Leases: Send + Sync + 'static {
    /// Acquires the conversation for a turn for `ttl`, if it is free, or if `takeover_from` is its last issued token,
    /// whether that lease is held, has ended or was released. That token belongs to the caller's earlier turn or to a
    /// turn to be interrupted.
    ///
    /// While a request that `waits` is refused, its turn has a place in the queue of the conversation. A place lasts
    /// three seconds and is kept by another request, so a waiting turn repeats it sooner. A turn that is gone loses its
    /// place by that time. A conversation has a hundred places; further turns wait without order until one is free.
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
        waits: bool,
    ) -> Result<FencingToken>;

    /// Extends the lease to `ttl` from now, even if it has expired or was released. A `ttl` of zero ends it now: the
    /// provided [`release`](Self::release) relies on that.
    async fn renew(&self, key: &ConversationKey, token: FencingToken, ttl: Duration) -> Result;

    /// Releases the lease: it ends now. Does nothing if another turn has acquired the conversation.
    async fn release(&self, key: &ConversationKey, token: FencingToken) -> Result {
        match self.renew(key, token, Duration::ZERO).await {
            Err(StoreError::Fenced) => Ok(()),
            released => released,
        }
    }
}
