//! `StoreTimeout`: bounds the time of each store and lease operation of memory.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};
use conversation_store::{
    Batch, ConversationStore, Entry, EntryId, FencingToken, Leases, Page, ReadRange, Snapshot, StoreError,
    Version,
};
use tokio::time::timeout;

type Result<T = ()> = std::result::Result<T, StoreError>;

/// The longest time of an operation.
const LONGEST: Duration = Duration::from_secs(30);

const SILENT: &str = "the store did not answer within thirty seconds";

/// A store whose operations are dropped after a time. A read that takes longer is
/// [`Unavailable`](StoreError::Unavailable); anything else is [`OutcomeUnknown`](StoreError::OutcomeUnknown), since it
/// may have taken effect.
pub(crate) struct StoreTimeout(pub(crate) Arc<dyn ConversationStore>);

impl StoreTimeout {
    /// Runs an operation that has no effect.
    async fn ask<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        timeout(LONGEST, work).await.unwrap_or_else(|_| Err(StoreError::unavailable(SILENT)))
    }

    /// Runs an operation that may have taken effect.
    async fn change<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        timeout(LONGEST, work).await.unwrap_or_else(|_| Err(StoreError::outcome_unknown(SILENT)))
    }

    fn leases_of_store(&self) -> Result<&dyn Leases> {
        self.0.leases().ok_or(StoreError::Unsupported { what: "leases" })
    }
}

// Calls go through `*self.0`: the `Arc` is a store, too, and would box each future once more.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl ConversationStore for StoreTimeout {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        self.ask((*self.0).load(key, range)).await
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        self.ask((*self.0).load_branch(key, tip, range)).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        self.ask((*self.0).read(key, after, limit)).await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>> {
        self.ask((*self.0).branches(key)).await
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        self.change((*self.0).append(key, expected, batch)).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        self.change((*self.0).delete(key)).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        self.ask((*self.0).list(page)).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.0.leases().is_some().then_some(self)
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Leases for StoreTimeout {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
        waits: bool,
    ) -> Result<FencingToken> {
        self.change(self.leases_of_store()?.acquire(key, turn, ttl, takeover_from, waits)).await
    }

    async fn renew(&self, key: &ConversationKey, token: FencingToken, ttl: Duration) -> Result {
        self.change(self.leases_of_store()?.renew(key, token, ttl)).await
    }

    async fn release(&self, key: &ConversationKey, token: FencingToken) -> Result {
        self.change(self.leases_of_store()?.release(key, token)).await
    }
}
