use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId};
use async_trait::async_trait;
use chat_memory_advisor::{
    Batch, BatchKey, ConversationStore, Entry, EntryId, Fence, Leases, Page, Snapshot, StoreError, Version,
    View,
};

use super::pass::Fault;
use super::{AwaitPoints, Happened, Place};

/// A store whose operations pass points before and after their effect. Made by [`AwaitPoints::store`].
#[derive(Clone)]
pub struct PointStore {
    points: AwaitPoints,
    inner: Arc<dyn ConversationStore>,
    hands_out_leases: bool,
}

impl PointStore {
    /// The same store, which hands out leases if the wrapped one does, and passes points before and after all it does
    /// for them. A process that was killed keeps its own until they expire, so the next turn waits for that
    /// ([`WhenBusy::Queue`](chat_memory_advisor::WhenBusy)), on a paused clock.
    #[must_use]
    pub fn with_leases(self) -> Self {
        Self { hands_out_leases: true, ..self }
    }

    pub(super) fn new(points: &AwaitPoints, inner: Arc<dyn ConversationStore>) -> Self {
        Self { points: points.clone(), inner, hands_out_leases: false }
    }

    async fn pass(&self, place: Place) -> Result<(), StoreError> {
        match self.points.at(place).await {
            Some(Fault::Store(fault)) => fault.error().map_or(Ok(()), Err),
            _ => Ok(()),
        }
    }

    async fn lease<'a, T, F: Future<Output = Result<T, StoreError>>>(
        &'a self,
        [before, after]: [Place; 2],
        work: impl FnOnce(&'a dyn Leases) -> F,
    ) -> Result<T, StoreError> {
        let leases = self.inner.leases().ok_or(StoreError::Unsupported { what: "leases" })?;
        let _alive = self.points.alive();
        self.pass(before).await?;
        let done = work(leases).await;
        self.pass(after).await?;
        done
    }

    fn was_applied(&self, batch: &BatchKey) -> bool {
        self.points
            .has_happened(|happened| matches!(happened, Happened::Appended { key, .. } if key == batch))
    }
}

#[async_trait]
impl ConversationStore for PointStore {
    async fn load(&self, key: &ConversationKey, view: View) -> Result<Snapshot, StoreError> {
        let _alive = self.points.alive();
        self.pass(Place::BeforeLoad).await?;
        let loaded = self.inner.load(key, view).await;
        self.pass(Place::AfterLoad).await?;
        loaded
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        view: View,
    ) -> Result<Snapshot, StoreError> {
        let _alive = self.points.alive();
        self.pass(Place::BeforeLoad).await?;
        let loaded = self.inner.load_branch(key, tip, view).await;
        self.pass(Place::AfterLoad).await?;
        loaded
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
        let _alive = self.points.alive();
        let again = self.was_applied(&batch.key);
        self.pass(if again { Place::BeforeAppendAgain } else { Place::BeforeAppend }).await?;
        let (batch_key, entries) = (batch.key.clone(), batch.entries.clone());
        let appended = self.inner.append(key, expected, batch).await;
        match appended {
            Ok(version) if again => self.points.record(Happened::AppendedAgain { key: batch_key, version }),
            Ok(version) => self.points.record(Happened::Appended { key: batch_key, entries, version }),
            Err(_) => {}
        }
        self.pass(Place::AfterAppend).await?;
        appended
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.inner.delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        self.inner.list(page).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        (self.hands_out_leases && self.inner.leases().is_some()).then_some(self)
    }
}

#[async_trait]
impl Leases for PointStore {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        time: Duration,
        in_place_of: Option<Fence>,
    ) -> Result<Fence, StoreError> {
        let places = [Place::BeforeLease, Place::AfterLease];
        self.lease(places, |leases| leases.acquire(key, turn, time, in_place_of)).await
    }

    async fn renew(&self, key: &ConversationKey, fence: Fence, time: Duration) -> Result<(), StoreError> {
        let places = [Place::BeforeRenewal, Place::AfterRenewal];
        self.lease(places, |leases| leases.renew(key, fence, time)).await
    }

    async fn release(&self, key: &ConversationKey, fence: Fence) -> Result<(), StoreError> {
        let places = [Place::BeforeLeaseEnds, Place::AfterLeaseEnds];
        self.lease(places, |leases| leases.release(key, fence)).await
    }
}

impl fmt::Debug for PointStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointStore").field("points", &self.points).finish_non_exhaustive()
    }
}
