//! `PointStore`: a store with await points before and after each operation.

use async_trait::async_trait;
use conversation_store::{BatchKey, ConversationStore, StoreError, Version};

use crate::crash::{AwaitPoint, AwaitPoints, Event, Fault, Operation};
use advisor_testkit::{Around, Asked, StoreAround, Work};

/// A store whose operations pass points before and after their effect. Made by [`AwaitPoints::store`].
pub type PointStore = StoreAround<dyn ConversationStore, StorePoints>;

/// The points that the operations of a [`PointStore`] pass.
#[derive(Clone)]
pub struct StorePoints {
    points: AwaitPoints,
    leases: LeasePoints,
}

/// The points that a store passes for leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver chooses among all of them")]
pub enum LeasePoints {
    /// It supports no leases.
    NoLeases,
    /// The grant and the release of a lease. The number of requests and renewals depends on the time, so they pass no
    /// points. For processes that run by the real clock.
    Given,
    /// Points before and after each operation. The lease of a killed process lasts until it expires, so the next turn
    /// waits for that ([`OnBusy::Queue`](chat_memory_advisor::OnBusy)), on a paused clock.
    All,
}

/// Enables the leases of a store, with these points, if the wrapped store supports leases.
#[must_use]
pub fn with_leases(store: PointStore, leases: LeasePoints) -> PointStore {
    let points = store.around.points.clone();
    StoreAround::with(store.inner, StorePoints { points, leases })
}

impl StorePoints {
    pub(in crate::crash) fn new(points: &AwaitPoints) -> Self {
        Self { points: points.clone(), leases: LeasePoints::NoLeases }
    }

    async fn pass(&self, await_point: AwaitPoint) -> Result<(), StoreError> {
        match self.points.at(await_point).await {
            Some(Fault::Store(fault)) => fault.error().map_or(Ok(()), Err),
            _ => Ok(()),
        }
    }

    fn was_applied(&self, batch: &BatchKey) -> bool {
        self.points
            .lock()
            .events
            .iter()
            .any(|event| matches!(event, Event::Appended { key, .. } if key == batch))
    }

    /// Returns the operation whose points are passed, if it has any.
    fn operation(&self, asked: Asked<'_>) -> Option<Operation> {
        match asked {
            Asked::Load | Asked::Read | Asked::Branches => Some(Operation::Load),
            Asked::Append(batch) if self.was_applied(&batch.key) => Some(Operation::AppendAgain),
            Asked::Append(_) => Some(Operation::Append),
            Asked::Release => Some(Operation::Release),
            Asked::Acquire | Asked::Renew if self.leases == LeasePoints::Given => None,
            Asked::Acquire => Some(Operation::Acquire),
            Asked::Renew => Some(Operation::Renew),
            _ => None,
        }
    }

    fn record_append(&self, asked: Asked<'_>, operation: Operation, version: Option<Version>) {
        let (Asked::Append(batch), Some(version)) = (asked, version) else { return };
        let key = batch.key.clone();
        self.points.record(match operation {
            Operation::AppendAgain => Event::AppendedAgain { key, version },
            _ => Event::Appended { key, entries: batch.entries.clone(), version },
        });
    }
}

#[async_trait]
impl Around for StorePoints {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        let _alive = self.points.alive();
        let Some(operation) = self.operation(asked) else {
            let done = work.await?;
            if matches!(asked, Asked::Acquire) {
                self.pass(AwaitPoint::After(Operation::Acquire)).await?;
            }
            return Ok(done);
        };
        self.pass(AwaitPoint::Before(operation)).await?;
        let done = work.await;
        self.record_append(asked, operation, done.as_ref().ok().copied().flatten());
        self.pass(AwaitPoint::After(operation)).await?;
        done
    }

    fn hands_out_leases(&self) -> bool {
        self.leases != LeasePoints::NoLeases
    }
}
