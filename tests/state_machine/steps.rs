use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use advisor_chain::{
    Batch, ConversationKey, ConversationStore, Entry, EntryId, Fence, Leases, Page, Snapshot, StoreError,
    TurnId, Version, View, async_trait,
};

/// Counts the steps of the turn that is being read, as its leaves pass them. Clones share everything.
///
/// A case runs in one task, which says before each poll whose turn it is; so a turn has the same steps every time,
/// also where the store works on threads of its own.
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
    /// How often it was said where to stop. What waits because of an earlier time goes on.
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

    fn note(&self, version: Version) {
        if let Some(run) = &*lock(&self.0) {
            let mut passed = run.lock();
            (passed.version, passed.is_outdated) = (Some(version), false);
        }
    }

    /// A store that passes a step before and after each operation.
    pub(crate) fn store(&self, inner: Arc<dyn ConversationStore>) -> StepStore {
        StepStore { inner, steps: self.clone() }
    }
}

impl Run {
    /// Stops after so many more steps.
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
pub(crate) struct StepStore {
    inner: Arc<dyn ConversationStore>,
    steps: Steps,
}

impl StepStore {
    async fn run<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.steps.pass().await;
        let done = work.await;
        self.steps.pass().await;
        done
    }

    async fn load_with_steps(
        &self,
        work: impl Future<Output = Result<Snapshot, StoreError>>,
    ) -> Result<Snapshot, StoreError> {
        let loaded = self.run(work).await?;
        self.steps.note(loaded.version);
        Ok(loaded)
    }
}

#[async_trait]
impl ConversationStore for StepStore {
    async fn load(&self, key: &ConversationKey, view: View) -> Result<Snapshot, StoreError> {
        self.load_with_steps(self.inner.load(key, view)).await
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        view: View,
    ) -> Result<Snapshot, StoreError> {
        self.load_with_steps(self.inner.load_branch(key, tip, view)).await
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
        self.steps.pass().await;
        let version = self.inner.append(key, expected, batch).await;
        if let Ok(version) = &version {
            self.steps.note(*version);
        }
        self.steps.pass().await;
        version
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
impl Leases for StepStore {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        time: Duration,
        in_place_of: Option<Fence>,
    ) -> Result<Fence, StoreError> {
        self.run(self.leases_of_store()?.acquire(key, turn, time, in_place_of)).await
    }

    async fn renew(&self, key: &ConversationKey, fence: Fence, time: Duration) -> Result<(), StoreError> {
        self.run(self.leases_of_store()?.renew(key, fence, time)).await
    }

    async fn release(&self, key: &ConversationKey, fence: Fence) -> Result<(), StoreError> {
        self.run(self.leases_of_store()?.release(key, fence)).await
    }
}

impl StepStore {
    fn leases_of_store(&self) -> Result<&dyn Leases, StoreError> {
        self.inner.leases().ok_or(StoreError::Unsupported { what: "leases" })
    }
}
