use std::fmt;
use std::sync::Arc;

use advisor_core::ConversationKey;
use async_trait::async_trait;
use chat_memory_advisor::{Batch, BatchKey, ConversationStore, Page, Snapshot, StoreError, Version, View};

use super::points::Fault;
use super::{AwaitPoints, Happened, Place};

/// A store whose operations pass points before and after their effect. Made by [`AwaitPoints::store`].
#[derive(Clone)]
pub struct PointStore {
    points: AwaitPoints,
    inner: Arc<dyn ConversationStore>,
}

impl PointStore {
    pub(super) fn new(points: &AwaitPoints, inner: Arc<dyn ConversationStore>) -> Self {
        Self { points: points.clone(), inner }
    }

    /// The store without its points.
    pub(super) fn inner(&self) -> &Arc<dyn ConversationStore> {
        &self.inner
    }

    async fn pass(&self, place: Place) -> Result<(), StoreError> {
        match self.points.at(place).await {
            Some(Fault::Store(fault)) => fault.error().map_or(Ok(()), Err),
            _ => Ok(()),
        }
    }

    fn note(&self, batch_key: BatchKey, entries: Vec<chat_memory_advisor::NewEntry>, version: Version) {
        let again = self
            .points
            .has_happened(|happened| matches!(happened, Happened::Appended { key, .. } if *key == batch_key));
        self.points.record(if again {
            Happened::AppendedAgain { key: batch_key, version }
        } else {
            Happened::Appended { key: batch_key, entries, version }
        });
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

    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError> {
        let _alive = self.points.alive();
        self.pass(Place::BeforeAppend).await?;
        let (batch_key, entries) = (batch.key.clone(), batch.entries.clone());
        let appended = self.inner.append(key, expected, batch).await;
        if let Ok(version) = appended {
            self.note(batch_key, entries, version);
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
}

impl fmt::Debug for PointStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointStore").field("points", &self.points).finish_non_exhaustive()
    }
}
