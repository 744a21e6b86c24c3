use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId};
use async_trait::async_trait;
use chat_memory_advisor::{
    Batch, ConversationStore, Entry, EntryId, Fence, Leases, Page, Snapshot, StoreError, Version, View,
};
use tokio::task::yield_now;

/// What goes wrong with an operation of a [`FaultStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreFault {
    /// It fails and has no effect: [`StoreError::Unavailable`], which may pass.
    Unavailable,
    /// It has its effect, but nobody hears of it: [`StoreError::OutcomeUnknown`].
    AnswerLost,
    /// It has no effect, as if another writer had been there: [`StoreError::Conflict`].
    Conflict,
    /// It never ends and has no effect.
    HangBefore,
    /// It has its effect and never ends.
    HangAfter,
    /// It lets other tasks run so many times before its effect.
    Slow(u32),
}

impl StoreFault {
    /// One of each; what is slow lets other tasks run nine times.
    pub const ALL: [Self; 6] = [
        Self::Unavailable,
        Self::AnswerLost,
        Self::Conflict,
        Self::HangBefore,
        Self::HangAfter,
        Self::Slow(9),
    ];

    /// The error of an operation that fails so, whether or not it has its effect.
    pub(crate) fn error(self) -> Option<StoreError> {
        match self {
            Self::Unavailable => Some(StoreError::unavailable("the test wants it so")),
            Self::AnswerLost => Some(StoreError::outcome_unknown("the test wants it so")),
            Self::Conflict => Some(StoreError::Conflict { current: Version::new(u64::MAX) }),
            _ => None,
        }
    }
}

/// A store that fails, hangs and takes its time at the operations that a test names.
///
/// Loads, appends and what is asked of the store's leases are counted from 0. Each lets other tasks run once before
/// and once after its effect.
/// Clones share everything.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ErrorKind};
/// use advisor_testkit::{Answer, FaultStore, ScriptedModel, StoreFault};
/// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let store = FaultStore::new(InMemoryStore::new());
/// // Operation 0 loads the conversation, 1 stores the input, 2 the answer.
/// store.fail_at(2, StoreFault::Unavailable);
/// let model = ScriptedModel::new([Answer::of_text("Hi")]);
/// let client = ChatClient::builder(model).advisor(ChatMemoryAdvisor::new(store.clone())).build()?;
/// let error = client.prompt().user("Hello").conversation("c").call().await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NotPersisted);
/// assert_eq!(store.pending_faults(), 0);
/// # Ok(()) }
/// ```
pub struct FaultStore<S> {
    inner: Arc<S>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    operations: usize,
    faults: Vec<(usize, StoreFault)>,
}

impl<S: ConversationStore> FaultStore<S> {
    /// Wraps a store, in which nothing fails yet.
    pub fn new(inner: S) -> Self {
        Self { inner: Arc::new(inner), shared: Arc::default() }
    }

    /// The operation with this number, counted from the store's making on, goes wrong so. Several faults for
    /// one operation fall due one after the other.
    pub fn fail_at(&self, operation: usize, fault: StoreFault) {
        self.lock().faults.push((operation, fault));
    }

    /// How many loads, of branches too, appends and questions about leases there were.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.lock().operations
    }

    /// How many faults have not come yet.
    #[must_use]
    pub fn pending_faults(&self) -> usize {
        self.lock().faults.len()
    }

    /// From now on nothing fails.
    pub fn mend(&self) {
        self.lock().faults.clear();
    }

    fn leases_of_inner(&self) -> Result<&dyn Leases, StoreError> {
        self.inner.leases().ok_or(StoreError::Unsupported { what: "leases" })
    }

    fn next_fault(&self) -> Option<StoreFault> {
        let mut shared = self.lock();
        let operation = shared.operations;
        shared.operations += 1;
        let due = shared.faults.iter().position(|(at, _)| *at <= operation)?;
        Some(shared.faults.remove(due).1)
    }

    async fn run<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let fault = self.next_fault();
        let error = fault.and_then(StoreFault::error);
        let (before, after) =
            if fault == Some(StoreFault::AnswerLost) { (None, error) } else { (error, None) };
        if let Some(error) = before {
            return Err(error);
        }
        match fault {
            Some(StoreFault::HangBefore) => std::future::pending().await,
            Some(StoreFault::Slow(times)) => {
                for _ in 0..times {
                    yield_now().await;
                }
            }
            _ => yield_now().await,
        }
        let done = work.await;
        if let Some(error) = after {
            return Err(error);
        }
        match fault {
            Some(StoreFault::HangAfter) => std::future::pending().await,
            _ => yield_now().await,
        }
        done
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl<S: ConversationStore> ConversationStore for FaultStore<S> {
    async fn load(&self, key: &ConversationKey, view: View) -> Result<Snapshot, StoreError> {
        self.run(self.inner.load(key, view)).await
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        view: View,
    ) -> Result<Snapshot, StoreError> {
        self.run(self.inner.load_branch(key, tip, view)).await
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.inner.read(key, after, limit).await
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>, StoreError> {
        self.inner.branches(key).await
    }

    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError> {
        self.run(self.inner.append(key, expected, batch)).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.inner.delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        self.inner.list(page).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.inner.leases().is_some().then_some(self)
    }
}

#[async_trait]
impl<S: ConversationStore> Leases for FaultStore<S> {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        time: Duration,
        in_place_of: Option<Fence>,
    ) -> Result<Fence, StoreError> {
        self.run(self.leases_of_inner()?.acquire(key, turn, time, in_place_of)).await
    }

    async fn renew(&self, key: &ConversationKey, fence: Fence, time: Duration) -> Result<(), StoreError> {
        self.run(self.leases_of_inner()?.renew(key, fence, time)).await
    }

    async fn release(&self, key: &ConversationKey, fence: Fence) -> Result<(), StoreError> {
        self.run(self.leases_of_inner()?.release(key, fence)).await
    }
}

impl<S> Clone for FaultStore<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), shared: Arc::clone(&self.shared) }
    }
}

impl<S> fmt::Debug for FaultStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultStore").field("shared", &self.shared).finish_non_exhaustive()
    }
}
