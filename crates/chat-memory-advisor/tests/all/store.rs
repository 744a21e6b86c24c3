//! A store that fails where a test requires it, and counts its operations.

use std::sync::{Arc, Mutex};

use advisor_core::{ConversationKey, async_trait};
use advisor_testkit::{Around, Asked, FaultStore, StoreAround, StoreFault, Work};
use conversation_store::{
    ConversationStore, Entry, EntryKind, InMemoryStore, ReadRange, Snapshot, StoreError, Version,
};

/// Clones share everything. Each operation yields once before and once after its effect.
pub(crate) type TestStore = FaultStore<StoreAround<InMemoryStore, Counted>>;

/// What reached the store, since nothing failed before.
#[derive(Default)]
pub(crate) struct Counted(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    appended: Vec<String>,
    loads: usize,
    entries_read: usize,
    /// The entries up to this number are lost.
    lost: u64,
}

pub(crate) fn test_store() -> TestStore {
    FaultStore::new(StoreAround::with(Arc::new(InMemoryStore::new()), Counted::default()))
}

#[async_trait]
impl Around for Counted {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        let done = work.await?;
        if let Asked::Append(batch) = asked {
            let name = format!("{}/{}", batch.key.round, batch.key.step);
            self.0.lock().unwrap().appended.push(name);
        }
        Ok(done)
    }

    fn show(&self, snapshot: &mut Snapshot) {
        let mut counts = self.0.lock().unwrap();
        counts.loads += 1;
        snapshot.entries.retain(|entry| entry.seq > counts.lost);
        counts.entries_read += snapshot.entries.len();
    }
}

/// What a test sees and does of a store.
pub(crate) trait Watched {
    /// The `nth` operation from now on fails so; 0 is the next one.
    fn fail(&self, nth: usize, fault: StoreFault);

    /// The keys of the batches that were applied.
    fn appended(&self) -> Vec<String>;

    fn loads(&self) -> usize;

    /// The number of entries that all loads have returned.
    fn entries_read(&self) -> usize;

    /// Loses the entries up to this number, as a damaged store does.
    fn lose_up_to(&self, last: u64);

    async fn log(&self, key: &ConversationKey) -> Vec<Entry>;
}

impl Watched for TestStore {
    fn fail(&self, nth: usize, fault: StoreFault) {
        self.fail_at(self.operations() + nth, fault);
    }

    fn appended(&self) -> Vec<String> {
        self.inner.around.0.lock().unwrap().appended.clone()
    }

    fn loads(&self) -> usize {
        self.inner.around.0.lock().unwrap().loads
    }

    fn entries_read(&self) -> usize {
        self.inner.around.0.lock().unwrap().entries_read
    }

    fn lose_up_to(&self, last: u64) {
        self.inner.around.0.lock().unwrap().lost = last;
    }

    async fn log(&self, key: &ConversationKey) -> Vec<Entry> {
        self.inner.inner.load(key, ReadRange::All).await.unwrap().entries
    }
}

/// Returns whether the last entry of a log is the end of a turn.
pub(crate) fn has_ended(log: &[Entry]) -> bool {
    log.last().is_some_and(|last| matches!(last.kind, EntryKind::TurnEnded(_)))
}
