//! `Steps`: counts the steps of the turn that is read, and stops it at one of them.

use std::future::poll_fn;
use std::sync::{MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use advisor_testkit::{Around, Asked, StoreAround, Work};
use advisor_tests::prelude::*;

/// Counts the steps of the turn that is being read, as its leaves pass them. Clones share the count.
///
/// A case runs in one task, which names the current turn before each poll. A turn therefore always has the same
/// steps, even if the store works on separate threads.
#[derive(Clone, Default)]
pub(crate) struct Steps(Arc<Mutex<Option<Run>>>);

/// One reading of a turn.
#[derive(Clone, Default)]
pub(crate) struct Run(Arc<Mutex<Passed>>);

#[derive(Default)]
struct Passed {
    steps: usize,
    stop_after: Option<usize>,
    reached: bool,
    /// The number of stops that were set. A step that waits because of an earlier stop continues.
    stops: u32,
    stuck: Vec<Waker>,
    /// The version that the store gave last, and whether it did so before the conversation was deleted.
    version: Option<Version>,
    is_outdated: bool,
}

impl Steps {
    /// Whose turn it is from now on.
    pub(crate) fn are_of(&self, run: Option<&Run>) {
        *lock(&self.0) = run.cloned();
    }

    /// Passes a step; stays there if the turn is to be stopped at it.
    pub(crate) async fn pass(&self) {
        let Some(run) = lock(&self.0).clone() else { return };
        let Some(stopped) = run.count() else { return };
        poll_fn(|cx| {
            let mut passed = run.lock();
            if passed.stops != stopped {
                return Poll::Ready(());
            }
            passed.stuck.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Returns whether the turn runs on a deleted conversation.
    pub(crate) fn is_outdated(&self) -> bool {
        lock(&self.0).as_ref().is_some_and(|run| run.outdated_version().is_some())
    }

    fn note(&self, version: Version) {
        if let Some(run) = &*lock(&self.0) {
            let mut passed = run.lock();
            (passed.version, passed.is_outdated) = (Some(version), false);
        }
    }

    /// A store that passes a step before and after each operation.
    pub(crate) fn store(&self, inner: Arc<dyn ConversationStore>) -> StepStore {
        StepStore::with(inner, self.clone())
    }
}

impl Run {
    /// Stops after this many more steps.
    pub(crate) fn stop_after(&self, steps: Option<usize>) {
        let stuck = {
            let mut passed = self.lock();
            (passed.reached, passed.steps, passed.stop_after) = (false, 0, steps);
            passed.stops += 1;
            std::mem::take(&mut passed.stuck)
        };
        stuck.into_iter().for_each(Waker::wake);
    }

    /// Nothing stops it any more.
    pub(crate) fn release(&self) {
        self.stop_after(None);
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.lock().reached
    }

    /// The conversation is deleted.
    pub(crate) fn outdate(&self) {
        self.lock().is_outdated = true;
    }

    /// The version that it expects of a conversation that is deleted, if it expects any.
    pub(crate) fn outdated_version(&self) -> Option<Version> {
        let passed = self.lock();
        passed.version.filter(|version| passed.is_outdated && *version > Version::EMPTY)
    }

    /// Counts a step. If the turn is to be stopped at it, the number of that stop.
    fn count(&self) -> Option<u32> {
        let mut passed = self.lock();
        let stops = passed.stop_after == Some(passed.steps);
        passed.steps += 1;
        passed.reached |= stops;
        stops.then_some(passed.stops)
    }

    fn lock(&self) -> MutexGuard<'_, Passed> {
        lock(&self.0)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A store whose operations pass steps.
pub(crate) type StepStore = StoreAround<dyn ConversationStore, Steps>;

#[async_trait]
impl Around for Steps {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        if matches!(asked, Asked::Delete | Asked::List) {
            return work.await;
        }
        self.pass().await;
        let done = work.await;
        if let (Asked::Append(_) | Asked::Load, Ok(Some(version))) = (asked, &done) {
            self.note(*version);
        }
        self.pass().await;
        done
    }
}
