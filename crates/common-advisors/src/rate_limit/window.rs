//! `Window`: at most n calls begin in any span of a length, in the order of arrival.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Awaits `work`, but not after `end`.
pub(super) async fn within<T>(end: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match end {
        Some(end) => timeout_at(end, work).await.ok(),
        None => Some(work.await),
    }
}

/// Lets at most a number of calls begin in any span of a length. A token bucket lets almost twice as many
/// begin.
#[derive(Debug)]
pub(super) struct Window {
    calls: usize,
    per: Duration,
    /// The times at which the last calls began, at most `calls`.
    begun: Mutex<VecDeque<Instant>>,
    /// Its holder is the call that begins next. The others wait in their order.
    next: Semaphore,
}

impl Window {
    pub(super) fn new(calls: usize, per: Duration) -> Self {
        Self { calls, per, begun: Mutex::default(), next: Semaphore::new(1) }
    }

    /// Waits until a call may begin, and counts it. A call that is dropped meanwhile does not count.
    ///
    /// # Errors
    /// The time until a call may begin, if that is after `end`.
    pub(super) async fn begin(&self, end: Option<Instant>) -> Result<(), Duration> {
        let turn = within(end, self.next.acquire()).await;
        let time = self.free_at();
        if turn.is_none() || end.is_some_and(|end| time > end) {
            return Err(self.time_left());
        }
        sleep_until(time).await;
        let mut begun = self.begun();
        if begun.len() >= self.calls {
            begun.pop_front();
        }
        begun.push_back(Instant::now());
        Ok(())
    }

    /// Returns the time until a call may begin, apart from those that wait.
    pub(super) fn time_left(&self) -> Duration {
        self.free_at().saturating_duration_since(Instant::now())
    }

    /// Checks whether no call counts any more.
    pub(super) fn is_empty(&self) -> bool {
        let last = self.begun().back().copied();
        last.is_none_or(|last| last.elapsed() >= self.per)
    }

    /// Returns the time from which a call may begin.
    fn free_at(&self) -> Instant {
        let now = Instant::now();
        let begun = self.begun();
        let oldest = begun.front().filter(|_| begun.len() >= self.calls);
        // A span beyond the clock's range never ends; a year stands for it.
        let far = || now + Duration::from_secs(365 * 24 * 60 * 60);
        oldest.map_or(now, |oldest| oldest.checked_add(self.per).unwrap_or_else(far).max(now))
    }

    fn begun(&self) -> MutexGuard<'_, VecDeque<Instant>> {
        // Code under the lock never leaves the times inconsistent.
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
