//! `TimeoutStore`: decorator that bounds the time of each store and lease operation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};
use tokio::time::timeout;

use crate::{
    Batch, ConversationStore, Entry, EntryId, FencingToken, Leases, Page, ReadRange, Result, Snapshot,
    StoreError, Version,
};

/// A store decorator that limits the time of each operation.
///
/// # Errors
/// A read that exceeds the timeout is [`Unavailable`](StoreError::Unavailable). An append, a deletion or a lease
/// operation that exceeds it is [`OutcomeUnknown`](StoreError::OutcomeUnknown), since it may have taken effect.
/// Both can be retried.
///
/// # Cancellation
/// An operation that exceeds the timeout is dropped.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use conversation_store::{InMemoryStore, TimeoutStore};
///
/// let store = TimeoutStore::new(Arc::new(InMemoryStore::new()), Duration::from_secs(5));
/// ```
#[derive(Clone)]
pub struct TimeoutStore {
    store: Arc<dyn ConversationStore>,
    timeout: Duration,
}

impl TimeoutStore {
    /// Wraps a store and limits each operation to `timeout`.
    #[must_use]
    pub fn new(store: Arc<dyn ConversationStore>, timeout: Duration) -> Self {
        Self { store, timeout }
    }

    /// Sets the time limit of each operation.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Runs an operation that has no effect.
    async fn ask<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        timeout(self.timeout, work).await.unwrap_or_else(|_| Err(StoreError::unavailable(SILENT)))
    }

    /// Runs an operation that may have taken effect.
    async fn change<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        timeout(self.timeout, work).await.unwrap_or_else(|_| Err(StoreError::outcome_unknown(SILENT)))
    }
}

const SILENT: &str = "the store did not answer within its timeout";

// Calls go through `*self.store`: the `Arc` is a store, too, and would box each future once more.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl ConversationStore for TimeoutStore {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        self.ask((*self.store).load(key, range)).await
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        self.ask((*self.store).load_branch(key, tip, range)).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        self.ask((*self.store).read(key, after, limit)).await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>> {
        self.ask((*self.store).branches(key)).await
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        self.change((*self.store).append(key, expected, batch)).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        self.change((*self.store).delete(key)).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        self.ask((*self.store).list(page)).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.store.leases().is_some().then_some(self)
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Leases for TimeoutStore {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
    ) -> Result<FencingToken> {
        self.change(self.leases_of_store()?.acquire(key, turn, ttl, takeover_from)).await
    }

    async fn acquire_in_turn(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
    ) -> Result<FencingToken> {
        self.change(self.leases_of_store()?.acquire_in_turn(key, turn, ttl, takeover_from)).await
    }

    async fn renew(&self, key: &ConversationKey, token: FencingToken, ttl: Duration) -> Result {
        self.change(self.leases_of_store()?.renew(key, token, ttl)).await
    }

    async fn release(&self, key: &ConversationKey, token: FencingToken) -> Result {
        self.change(self.leases_of_store()?.release(key, token)).await
    }
}

impl TimeoutStore {
    fn leases_of_store(&self) -> Result<&dyn Leases> {
        self.store.leases().ok_or(StoreError::Unsupported { what: "leases" })
    }
}

impl fmt::Debug for TimeoutStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutStore").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
