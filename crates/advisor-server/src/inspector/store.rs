//! `InspectedStore`: a store whose appends are recorded.

use advisor_core::{ConversationKey, async_trait};
use chat_memory_advisor::store::{
    Batch, ConversationStore, Entry, EntryId, Leases, Page, ReadRange, Result, Snapshot, Version,
};
use serde_json::Value;

use super::Inspector;

/// A store whose appends are recorded, once the wrapped store has acknowledged them.
pub(super) struct InspectedStore<S> {
    store: S,
    inspector: Inspector,
}

impl<S> InspectedStore<S> {
    pub(super) fn new(store: S, inspector: Inspector) -> Self {
        Self { store, inspector }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: ConversationStore> ConversationStore for InspectedStore<S> {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        self.store.load(key, range).await
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        self.store.load_branch(key, tip, range).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        self.store.read(key, after, limit).await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>> {
        self.store.branches(key).await
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        let turn = batch.key.turn.clone();
        let labels: Vec<_> = batch.entries.iter().map(|entry| entry.kind.label()).collect();
        let version = self.store.append(key, expected, batch).await?;
        if let Some(journal) = self.inspector.find(&(key.clone(), turn)) {
            journal.record(format!("stored {}", labels.join(" ")), Value::Null);
        }
        Ok(version)
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        self.store.delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        self.store.list(page).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.store.leases()
    }
}
