//! A single timeout clock.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use advisor_core::AWAY_AFTER;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Clock, TimedOut};

/// A clock that runs while its owner waits.
///
/// The owner first polls its source. If that is pending, it polls the deadline, which starts the clock if it is
/// stopped. If an item has arrived, the owner [stops](Self::stop) the clock. Stopping and starting set no timer:
/// the timer is set once per period, not once per item.
///
/// Must be polled in a tokio runtime whose timer is enabled.
#[derive(Debug)]
pub(crate) struct Deadline {
    clock: Clock,
    after: Option<Duration>,
    /// The start of the clock; `None` while it is stopped.
    started: Option<Instant>,
    /// Created at the first poll. It may be set to an earlier time than the clock runs out, never to a later one.
    sleep: Option<Pin<Box<Sleep>>>,
    /// The clock has run out, but the owner could not check its source. In a task that has used up its budget, tokio
    /// makes every poll pending. The next poll reports the timeout.
    overdue: bool,
}

impl Deadline {
    /// Creates a stopped clock. Without `after` it never runs out.
    pub(crate) fn new(clock: Clock, after: Option<Duration>) -> Self {
        Self { clock, after, started: None, sleep: None, overdue: false }
    }

    /// Stops the clock because an item has arrived. The next poll starts it from zero.
    pub(crate) fn stop(&mut self) {
        self.started = None;
        self.overdue = false;
    }

    /// Starts the clock if it is stopped; ready when it has run out. Poll it only after the source was pending.
    ///
    /// If the first poll after the deadline is late by more than [`AWAY_AFTER`], the owner was not waiting: the clock
    /// restarts.
    pub(crate) fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<TimedOut> {
        let Some(after) = self.after else {
            return Poll::Pending;
        };
        loop {
            let now = Instant::now();
            // A deadline too far away to be expressed never comes.
            let Some(due) = self.started.get_or_insert(now).checked_add(after) else {
                return Poll::Pending;
            };
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
            let rang = sleep.as_mut().poll(cx).is_ready();
            match now.checked_duration_since(due) {
                None if rang => sleep.as_mut().reset(due),
                None => return Poll::Pending,
                Some(_) if self.overdue => return Poll::Ready(TimedOut::new(self.clock, after)),
                Some(late) if late > AWAY_AFTER => self.stop(),
                Some(_) if rang => return Poll::Ready(TimedOut::new(self.clock, after)),
                Some(_) => {
                    self.overdue = true;
                    return Poll::Pending;
                }
            }
        }
    }

    /// Awaits the future while the clock runs. The clock is not stopped when the future is done, so that it can
    /// cover the next wait as well.
    ///
    /// # Cancellation
    ///
    /// Drops the future when the clock runs out.
    ///
    /// # Errors
    ///
    /// [`TimedOut`] if the clock runs out first.
    pub(crate) async fn limit<F: Future>(&mut self, future: F) -> Result<F::Output, TimedOut> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll_elapsed(cx).map(Err),
        })
        .await
    }
}
