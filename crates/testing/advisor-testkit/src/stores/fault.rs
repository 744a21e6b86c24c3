//! `FaultStore` and `StoreFault`: a store whose chosen operations fail, hang or are slow.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use conversation_store::{ConversationStore, StoreError, Version};
use tokio::task::yield_now;

use super::{Around, Asked, StoreAround, Work};

/// A fault in an operation of a [`FaultStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreFault {
    /// The operation fails without effect: [`StoreError::Unavailable`], a transient error.
    Unavailable,
    /// The operation has its effect, but the answer is lost: [`StoreError::OutcomeUnknown`].
    AnswerLost,
    /// The operation has no effect, as if another writer had written first: [`StoreError::Conflict`].
    Conflict,
    /// The operation hangs before its effect.
    HangBefore,
    /// The operation hangs after its effect.
    HangAfter,
    /// The operation yields to other tasks this many times before its effect.
    Slow(u32),
}

impl StoreFault {
    /// Returns the error of an operation with this fault, if it fails.
    #[must_use]
    pub fn error(self) -> Option<StoreError> {
        match self {
            Self::Unavailable => Some(StoreError::unavailable("the test wants it so")),
            Self::AnswerLost => Some(StoreError::outcome_unknown("the test wants it so")),
            Self::Conflict => Some(StoreError::Conflict { current: Version(u64::MAX) }),
            _ => None,
        }
    }
}

/// A store that fails, hangs or is slow at the operations that a test chooses.
///
/// Loads, reads, lists of branches, appends and lease operations are counted from 0. Each yields to other tasks
/// once before and once after its effect. Clones share everything.
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

/// The faults of a [`FaultStore`].
#[derive(Debug, Default)]
pub struct Faults(Mutex<Shared>);

#[derive(Debug, Default)]
struct Shared {
    operations: usize,
    faults: Vec<(usize, StoreFault)>,
}

impl<S: ConversationStore> FaultStore<S> {
    /// Wraps a store, without faults so far.
    pub fn new(inner: S) -> Self {
        Self::with(Arc::new(inner), Faults::default())
    }

    /// Adds a fault to the operation with this number, counted since the store was created. Several faults with
    /// one number occur in successive operations.
    pub fn fail_at(&self, operation: usize, fault: StoreFault) {
        self.around.lock().faults.push((operation, fault));
    }

    /// Returns the number of loads, reads, lists of branches, appends and lease operations so far.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.around.lock().operations
    }

    /// Returns the number of faults that have not occurred yet.
    #[must_use]
    pub fn pending_faults(&self) -> usize {
        self.around.lock().faults.len()
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
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
