use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};
use tokio::time::timeout;

use crate::{
    Batch, ConversationStore, Entry, EntryId, Fence, Leases, Page, Snapshot, StoreError, Version, View,
};

/// A store whose operations may take so long.
pub(crate) struct Bounded {
    pub(crate) store: Arc<dyn ConversationStore>,
    pub(crate) time: Duration,
}

impl Bounded {
    /// An operation that has no effect if it did not answer.
    async fn ask<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        timeout(self.time, work).await.unwrap_or_else(|_| Err(StoreError::unavailable(SILENT)))
    }

    /// An operation that may have had its effect.
    async fn change<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        timeout(self.time, work).await.unwrap_or_else(|_| Err(StoreError::outcome_unknown(SILENT)))
    }
}

const SILENT: &str = "the store did not answer within the time that memory gives it";

// Asked as `*self.store`: the `Arc` is a store, too, and would box each future once more.
#[async_trait]
impl ConversationStore for Bounded {
    async fn load(&self, key: &ConversationKey, view: View) -> Result<Snapshot, StoreError> {
        self.ask((*self.store).load(key, view)).await
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        view: View,
    ) -> Result<Snapshot, StoreError> {
        self.ask((*self.store).load_branch(key, tip, view)).await
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.ask((*self.store).read(key, after, limit)).await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>, StoreError> {
        self.ask((*self.store).branches(key)).await
    }

    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError> {
        self.change((*self.store).append(key, expected, batch)).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.change((*self.store).delete(key)).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        self.ask((*self.store).list(page)).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.store.leases().is_some().then_some(self)
    }
}

#[async_trait]
impl Leases for Bounded {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        time: Duration,
        in_place_of: Option<Fence>,
    ) -> Result<Fence, StoreError> {
        self.change(self.leases_of_store()?.acquire(key, turn, time, in_place_of)).await
    }

    async fn renew(&self, key: &ConversationKey, fence: Fence, time: Duration) -> Result<(), StoreError> {
        self.change(self.leases_of_store()?.renew(key, fence, time)).await
    }

    async fn release(&self, key: &ConversationKey, fence: Fence) -> Result<(), StoreError> {
        self.change(self.leases_of_store()?.release(key, fence)).await
    }
}

impl Bounded {
    fn leases_of_store(&self) -> Result<&dyn Leases, StoreError> {
        self.store.leases().ok_or(StoreError::Unsupported { what: "leases" })
    }
}
