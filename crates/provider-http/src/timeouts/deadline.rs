//! One clock.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::{Clock, TimedOut};

/// A poll that comes later than this after a deadline was not woken by it: the consumer was away.
const AWAY: Duration = Duration::from_secs(1);

/// A clock that runs while its owner waits.
///
/// The owner polls what it waits for first. If that is pending, it polls the deadline, which starts the clock if it stands; if
/// what it waited for has come, it [stops](Self::stop) the clock. Stopping and starting cost no timer: the timer is set once
/// per period, not once per item.
///
/// Must be polled in a tokio runtime whose timer is switched on.
///
/// ```
/// use std::future::poll_fn;
/// use std::time::Duration;
/// use provider_http::timeouts::{Clock, Deadline, TimedOut};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let mut progress = Deadline::new(Clock::Progress, Some(Duration::from_secs(30)));
/// let timed_out = poll_fn(|cx| progress.poll_elapsed(cx)).await;
/// assert_eq!(timed_out, TimedOut::new(Clock::Progress, Duration::from_secs(30)));
/// assert_eq!(timed_out.to_string(), "no further event of the answer within 30s");
/// # })
/// ```
#[derive(Debug)]
pub struct Deadline {
    clock: Clock,
    after: Option<Duration>,
    /// When the clock was started; `None` while it stands.
    started: Option<Instant>,
    /// Made at the first poll. It may be set to an earlier time than the clock runs out, never to a later one.
    sleep: Option<Pin<Box<Sleep>>>,
    /// It was seen to have run out, but its owner had no chance to look at what it waits for: tokio makes everything pending in
    /// a task that has run for long. One more poll, and that was it.
    overdue: bool,
}

impl Deadline {
    /// A clock that stands. Without `after` it never runs out.
    #[must_use]
    pub fn new(clock: Clock, after: Option<Duration>) -> Self {
        Self { clock, after, started: None, sleep: None, overdue: false }
    }

    /// Stops the clock: what it was waiting for has come. The next poll starts it from zero.
    pub fn stop(&mut self) {
        self.started = None;
        self.overdue = false;
    }

    /// Starts the clock if it stands; ready when it has run out. To be polled only after what one waits for was pending.
    ///
    /// If nobody polled for a while around the deadline, nobody waited: the clock starts anew.
    pub fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<TimedOut> {
        let Some(after) = self.after else {
            return Poll::Pending;
        };
        loop {
            let now = Instant::now();
            // A time too far away to be expressed never comes.
            let Some(due) = self.started.get_or_insert(now).checked_add(after) else {
                return Poll::Pending;
            };
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
            let rang = sleep.as_mut().poll(cx).is_ready();
            match now.checked_duration_since(due) {
                None if rang => sleep.as_mut().reset(due),
                None => return Poll::Pending,
                Some(_) if self.overdue => return Poll::Ready(TimedOut::new(self.clock, after)),
                Some(late) if late > AWAY => self.stop(),
                Some(_) if rang => return Poll::Ready(TimedOut::new(self.clock, after)),
                Some(_) => {
                    self.overdue = true;
                    return Poll::Pending;
                }
            }
        }
    }

    /// Waits for the future while the clock runs. The clock is not stopped when the future is done, so that it can go on
    /// running for what comes next.
    ///
    /// # Cancellation
    ///
    /// Drops the future when the clock runs out.
    ///
    /// # Errors
    ///
    /// [`TimedOut`] if the clock runs out first.
    pub async fn limit<F: Future>(&mut self, future: F) -> Result<F::Output, TimedOut> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll_elapsed(cx).map(Err),
        })
        .await
    }
}
