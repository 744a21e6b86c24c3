//! The schedule of retries: exponential with jitter, or the server's `Retry-After`.
//!
//! This module neither waits nor sends. The owner of the retries asks [`Waits::next_wait`] how long to wait, as long as
//! no part of the answer was shown.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

#[cfg(test)]
mod tests;

/// Number of retries, and the wait before each.
///
/// The n-th wait is random between half and all of `first` · 2ⁿ⁻¹, capped at `longest`. The fixed half keeps the
/// schedule exponential. The random half keeps clients that failed together from retrying together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "callers write it with `..Backoff::default()`")]
pub struct Backoff {
    /// Number of retries after the first attempt. Default 2; 0 disables retries.
    pub retries: usize,
    /// Maximum of the first wait. Default 500 ms.
    pub first: Duration,
    /// Maximum of every wait of the schedule. Default 8 s.
    pub longest: Duration,
    /// Maximum wait that a server can request. If it wants a longer one, no further attempt is made: an earlier one would
    /// be refused again. Default 60 s, the window in which providers count requests per minute.
    pub max_retry_after: Duration,
    /// Seed that makes the jitter the same in every run, for tests. Default `None`: random.
    pub seed: Option<u64>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            retries: 2,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(8),
            max_retry_after: Duration::from_secs(60),
            seed: None,
        }
    }
}

impl Backoff {
    /// Disables retries.
    #[must_use]
    pub fn none() -> Self {
        Self { retries: 0, ..Self::default() }
    }

    /// Returns the waits of one request, from its first failure on.
    #[must_use]
    pub fn waits(&self) -> Waits {
        // backon adds jitter of up to the whole duration to each wait, so it gets half of it.
        let builder = ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(self.first.min(self.longest) / 2)
            .with_max_delay(self.longest / 2)
            .with_max_times(self.retries);
        let builder = match self.seed {
            Some(seed) => builder.with_jitter_seed(seed),
            None => builder,
        };
        Waits { schedule: builder.build(), max_retry_after: self.max_retry_after }
    }
}

/// The waits of one request.
///
/// ```
/// use std::time::Duration;
/// use advisor_core::Backoff;
///
/// let mut waits = Backoff::default().waits();
/// let own = waits.next_wait(None).expect("a first retry");
/// assert!((Duration::from_millis(250)..=Duration::from_millis(500)).contains(&own));
/// // The server's delay takes precedence.
/// assert_eq!(waits.next_wait(Some(Duration::from_secs(3))), Some(Duration::from_secs(3)));
/// assert_eq!(waits.next_wait(None), None);
/// ```
#[derive(Debug)]
pub struct Waits {
    schedule: ExponentialBackoff,
    max_retry_after: Duration,
}

impl Waits {
    /// Returns the wait before the next attempt; `None` if no retry is left, or if the server wants a longer wait than
    /// [`Backoff::max_retry_after`].
    ///
    /// `asked` is the server's request, such as [`Error::retry_after`](crate::Error::retry_after). It takes precedence
    /// over the schedule, and uses up one retry.
    pub fn next_wait(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let own = self.schedule.next()?;
        Some(asked.unwrap_or(own)).filter(|_| asked.is_none_or(|asked| asked <= self.max_retry_after))
    }
}

/// The delay after the end of a timeout from which on its caller counts as away.
///
/// A timeout runs while its future is polled. If the first poll after its end is later than this, nobody was waiting.
/// The timeouts of providers and of policies start again then, so that a slow reader causes none.
pub const AWAY_AFTER: Duration = Duration::from_secs(1);

/// Returns a wait in words, rounded up, for the text of an error.
///
/// ```
/// use std::time::Duration;
/// use advisor_core::wait_in_words;
///
/// assert_eq!(wait_in_words(Duration::from_millis(6_500)), "7 s");
/// assert_eq!(wait_in_words(Duration::from_secs(7_200)), "2 h");
/// ```
#[must_use]
pub fn wait_in_words(wait: Duration) -> String {
    let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
    let minutes = seconds.div_ceil(60);
    match (minutes / 60, minutes % 60) {
        _ if seconds <= 120 => format!("{seconds} s"),
        (..2, _) => format!("{minutes} min"),
        (hours @ ..48, 0) => format!("{hours} h"),
        (hours @ ..48, minutes) => format!("{hours} h {minutes} min"),
        _ => match minutes.div_ceil(24 * 60) {
            days @ ..=365 => format!("{days} d"),
            _ => "more than a year".to_owned(),
        },
    }
}
