use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use conversation_store::{ConversationStore, StoreError, Version};
use tokio::task::yield_now;

use super::{Around, Asked, StoreAround, Work};

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
/// Loads, reads, appends and what is asked of the store's leases are counted from 0. Each lets other tasks run once
/// before and once after its effect.
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
/// let model = ScriptedModel::new([Answer::from_text("Hi")]);
/// let client = ChatClient::builder(model).advisor(ChatMemoryAdvisor::new(store.clone())).build()?;
/// let error = client.prompt().user("Hello").conversation("c").call().await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NotPersisted);
/// assert_eq!(store.pending_faults(), 0);
/// # Ok(()) }
/// ```
pub type FaultStore<S> = StoreAround<S, Faults>;

/// What goes wrong with the operations of a [`FaultStore`].
#[derive(Debug, Default)]
pub struct Faults(Mutex<Shared>);

#[derive(Debug, Default)]
struct Shared {
    operations: usize,
    faults: Vec<(usize, StoreFault)>,
}

impl<S: ConversationStore> FaultStore<S> {
    /// Wraps a store, in which nothing fails yet.
    pub fn new(inner: S) -> Self {
        Self::with(Arc::new(inner), Faults::default())
    }

    /// The operation with this number, counted from the store's making on, goes wrong so. Several faults for
    /// one operation fall due one after the other.
    pub fn fail_at(&self, operation: usize, fault: StoreFault) {
        self.around.lock().faults.push((operation, fault));
    }

    /// How many loads and reads, of branches too, appends and questions about leases there were.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.around.lock().operations
    }

    /// How many faults have not come yet.
    #[must_use]
    pub fn pending_faults(&self) -> usize {
        self.around.lock().faults.len()
    }

    /// From now on nothing fails.
    pub fn mend(&self) {
        self.around.lock().faults.clear();
    }
}

impl Faults {
    fn next_fault(&self) -> Option<StoreFault> {
        let mut shared = self.lock();
        let operation = shared.operations;
        shared.operations += 1;
        let due = shared.faults.iter().position(|(at, _)| *at <= operation)?;
        Some(shared.faults.remove(due).1)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Around for Faults {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        if matches!(asked, Asked::Delete | Asked::List) {
            return work.await;
        }
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
}
