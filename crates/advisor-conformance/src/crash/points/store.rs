//! `PointStore`: a store with await points before and after each operation.

use std::fmt;

use async_trait::async_trait;
use conversation_store::{BatchKey, ConversationStore, StoreError, Version};

use crate::crash::{AwaitPoint, AwaitPoints, Event, Fault};
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
enum LeasePoints {
    /// It supports no leases.
    NoLeases,
    /// Those that depend on the actions of the turn, and not on the time.
    Given,
    All,
}

/// Enables the leases of a store if the wrapped store supports them, with points before and after each lease operation.
/// The lease of a killed process lasts until it expires, so the next turn waits for that
/// ([`OnBusy::Queue`](chat_memory_advisor::OnBusy)), on a paused clock.
#[must_use]
pub fn with_leases(store: PointStore) -> PointStore {
    with_points_of(store, LeasePoints::All)
}

/// Enables leases, but with fewer points. The number of requests and renewals depends on the time, so they
/// pass no points; only the grant and the release of a lease do. For processes that run by the real clock.
#[must_use]
pub fn with_given_leases(store: PointStore) -> PointStore {
    with_points_of(store, LeasePoints::Given)
}

fn with_points_of(store: PointStore, leases: LeasePoints) -> PointStore {
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
        self.points.has_event(|event| matches!(event, Event::Appended { key, .. } if key == batch))
    }

    /// Returns the points before and after an operation, if it has any.
    fn await_points(&self, asked: Asked<'_>) -> Option<[AwaitPoint; 2]> {
        match asked {
            Asked::Load | Asked::Read | Asked::Branches => {
                Some([AwaitPoint::BeforeLoad, AwaitPoint::AfterLoad])
            }
            Asked::Append(batch) if self.was_applied(&batch.key) => {
                Some([AwaitPoint::BeforeAppendAgain, AwaitPoint::AfterAppend])
            }
            Asked::Append(_) => Some([AwaitPoint::BeforeAppend, AwaitPoint::AfterAppend]),
            Asked::Release => Some([AwaitPoint::BeforeLeaseEnds, AwaitPoint::AfterLeaseEnds]),
            Asked::Acquire | Asked::Renew if self.leases == LeasePoints::Given => None,
            Asked::Acquire => Some([AwaitPoint::BeforeLease, AwaitPoint::AfterLease]),
            Asked::Renew => Some([AwaitPoint::BeforeRenewal, AwaitPoint::AfterRenewal]),
            _ => None,
        }
    }

    fn record_append(&self, asked: Asked<'_>, before: AwaitPoint, version: Option<Version>) {
        let (Asked::Append(batch), Some(version)) = (asked, version) else { return };
        let key = batch.key.clone();
        self.points.record(match before {
            AwaitPoint::BeforeAppendAgain => Event::AppendedAgain { key, version },
            _ => Event::Appended { key, entries: batch.entries.clone(), version },
        });
    }
}

#[async_trait]
impl Around for StorePoints {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        let _alive = self.points.alive();
        let Some([before, after]) = self.await_points(asked) else {
            let done = work.await?;
            if matches!(asked, Asked::Acquire) {
                self.pass(AwaitPoint::AfterLease).await?;
            }
            return Ok(done);
        };
        self.pass(before).await?;
        let done = work.await;
        self.record_append(asked, before, done.as_ref().ok().copied().flatten());
        self.pass(after).await?;
        done
    }

    fn hands_out_leases(&self) -> bool {
        self.leases != LeasePoints::NoLeases
    }
}

impl fmt::Debug for StorePoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorePoints").field("points", &self.points).finish_non_exhaustive()
    }
}
