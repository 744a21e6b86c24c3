//! A store that fails, hangs and takes its time where a test says.

use std::sync::{Arc, Mutex};

use advisor_core::{ConversationKey, async_trait};
use chat_memory_advisor::{
    Batch, ConversationStore, Entry, EntryKind, InMemoryStore, Page, Snapshot, StoreError, Version, View,
};
use tokio::task::yield_now;

/// What goes wrong with an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// It fails and has no effect.
    Before,
    /// It has its effect and fails.
    After,
    /// It never ends and has no effect.
    HangBefore,
    /// It has its effect and never ends.
    HangAfter,
}

/// Clones share everything. Each operation yields once before and once after its effect.
#[derive(Clone, Default)]
pub(crate) struct TestStore {
    inner: InMemoryStore,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    /// The faults to come: after so many further operations.
    faults: Vec<(usize, Fault)>,
    appended: Vec<String>,
    loads: usize,
}

impl TestStore {
    /// The `nth` operation from now on fails so; 0 is the next one. Faults for the same operation fall due
    /// one after the other.
    pub(crate) fn fail(&self, nth: usize, fault: Fault) {
        self.shared.lock().unwrap().faults.push((nth, fault));
    }

    /// The keys of the batches that were applied.
    pub(crate) fn appended(&self) -> Vec<String> {
        self.shared.lock().unwrap().appended.clone()
    }

    pub(crate) fn loads(&self) -> usize {
        self.shared.lock().unwrap().loads
    }

    pub(crate) async fn log(&self, key: &ConversationKey) -> Vec<Entry> {
        self.inner.load(key, View::All).await.unwrap().entries
    }

    /// Whether a fault is still to come.
    pub(crate) fn is_faulty(&self) -> bool {
        !self.shared.lock().unwrap().faults.is_empty()
    }

    fn fault(&self) -> Option<Fault> {
        let faults = &mut self.shared.lock().unwrap().faults;
        let due = faults.iter().position(|(left, _)| *left == 0).map(|at| faults.remove(at).1);
        faults.iter_mut().for_each(|(left, _)| *left = left.saturating_sub(1));
        due
    }

    async fn run<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let fault = self.fault();
        match fault {
            Some(Fault::Before) => return Err(StoreError::unavailable("scripted")),
            Some(Fault::HangBefore) => std::future::pending().await,
            _ => yield_now().await,
        }
        let done = work.await;
        match fault {
            Some(Fault::After) => return Err(StoreError::outcome_unknown("scripted")),
            Some(Fault::HangAfter) => std::future::pending().await,
            _ => yield_now().await,
        }
        done
    }
}

#[async_trait]
impl ConversationStore for TestStore {
    async fn load(&self, key: &ConversationKey, view: View) -> Result<Snapshot, StoreError> {
        self.shared.lock().unwrap().loads += 1;
        self.run(self.inner.load(key, view)).await
    }

    async fn append(&self, key: &ConversationKey, at: Version, batch: Batch) -> Result<Version, StoreError> {
        let name = format!("{}/{}", batch.key.round, batch.key.step);
        let written = async {
            let version = self.inner.append(key, at, batch).await?;
            self.shared.lock().unwrap().appended.push(name);
            Ok(version)
        };
        self.run(written).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.inner.delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        self.inner.list(page).await
    }
}

/// Whether a turn's last entry is its end.
pub(crate) fn has_ended(log: &[Entry]) -> bool {
    log.last().is_some_and(|last| matches!(last.kind, EntryKind::TurnEnded(_)))
}
