//! A store that fails where a test requires it, and counts its operations.

use std::sync::{Arc, Mutex};

use advisor_core::{ConversationKey, async_trait};
use advisor_testkit::{FaultStore, StoreFault};
use conversation_store::{
    Batch, ConversationStore, Entry, EntryId, EntryKind, InMemoryStore, Page, ReadRange, Snapshot,
    StoreError, Version,
};

/// Clones share everything. Each operation yields once before and once after its effect.
#[derive(Clone)]
pub(crate) struct TestStore {
    faulty: FaultStore<CountingStore>,
    counted: CountingStore,
}

/// The store that is reached when nothing fails before.
#[derive(Clone, Default)]
struct CountingStore {
    inner: InMemoryStore,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Default)]
struct Counts {
    appended: Vec<String>,
    loads: usize,
    entries_read: usize,
    /// The entries up to this number are lost.
    lost: u64,
}

impl Default for TestStore {
    fn default() -> Self {
        let counted = CountingStore::default();
        Self { faulty: FaultStore::new(counted.clone()), counted }
    }
}

impl TestStore {
    /// The `nth` operation from now on fails so; 0 is the next one.
    pub(crate) fn fail(&self, nth: usize, fault: StoreFault) {
        self.faulty.fail_at(self.faulty.operations() + nth, fault);
    }

    /// The keys of the batches that were applied.
    pub(crate) fn appended(&self) -> Vec<String> {
        self.counted.counts.lock().unwrap().appended.clone()
    }

    pub(crate) fn loads(&self) -> usize {
        self.counted.counts.lock().unwrap().loads
    }

    /// The number of entries that all reads have returned.
    pub(crate) fn entries_read(&self) -> usize {
        self.counted.counts.lock().unwrap().entries_read
    }

    pub(crate) async fn log(&self, key: &ConversationKey) -> Vec<Entry> {
        self.counted.inner.load(key, ReadRange::All).await.unwrap().entries
    }

    /// Loses the entries up to this number, as a damaged store does.
    pub(crate) fn lose_up_to(&self, last: u64) {
        self.counted.counts.lock().unwrap().lost = last;
    }

    /// Returns whether a fault is pending.
    pub(crate) fn is_faulty(&self) -> bool {
        self.faulty.pending_faults() > 0
    }
}

#[async_trait]
impl ConversationStore for TestStore {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot, StoreError> {
        self.faulty.load(key, range).await
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        range: ReadRange,
    ) -> Result<Snapshot, StoreError> {
        self.faulty.load_branch(key, tip, range).await
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.faulty.read(key, after, limit).await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>, StoreError> {
        self.faulty.branches(key).await
    }

    async fn append(&self, key: &ConversationKey, at: Version, batch: Batch) -> Result<Version, StoreError> {
        self.faulty.append(key, at, batch).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.faulty.delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        self.faulty.list(page).await
    }
}

impl CountingStore {
    fn counted(&self, mut snapshot: Snapshot) -> Snapshot {
        let mut counts = self.counts.lock().unwrap();
        snapshot.entries.retain(|entry| entry.seq > counts.lost);
        counts.entries_read += snapshot.entries.len();
        snapshot
    }
}

#[async_trait]
impl ConversationStore for CountingStore {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot, StoreError> {
        self.counts.lock().unwrap().loads += 1;
        Ok(self.counted(self.inner.load(key, range).await?))
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        range: ReadRange,
    ) -> Result<Snapshot, StoreError> {
        Ok(self.counted(self.inner.load_branch(key, tip, range).await?))
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let page = self.inner.read(key, after, limit).await?;
        self.counts.lock().unwrap().entries_read += page.len();
        Ok(page)
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>, StoreError> {
        self.inner.branches(key).await
    }

    async fn append(&self, key: &ConversationKey, at: Version, batch: Batch) -> Result<Version, StoreError> {
        let name = format!("{}/{}", batch.key.round, batch.key.step);
        let version = self.inner.append(key, at, batch).await?;
        self.counts.lock().unwrap().appended.push(name);
        Ok(version)
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.inner.delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        self.inner.list(page).await
    }
}

/// Returns whether the last entry of a log is the end of a turn.
pub(crate) fn has_ended(log: &[Entry]) -> bool {
    log.last().is_some_and(|last| matches!(last.kind, EntryKind::TurnEnded(_)))
}
