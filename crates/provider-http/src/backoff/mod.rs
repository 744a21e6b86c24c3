//! When to ask again: an exponential schedule with jitter, and what the server says in `Retry-After`.
//!
//! Nothing here sleeps or sends. Whoever owns the retries asks [`Waits::next_wait`] how long to wait, as long as nothing of the
//! answer was shown.

use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use http::HeaderMap;
use http::header::{HeaderName, RETRY_AFTER};

#[cfg(test)]
mod tests;

/// How often to ask again, and how long to wait before.
///
/// The n-th wait is drawn between the half and the whole of `first` · 2ⁿ⁻¹, but of no more than `longest`: the half keeps the
/// schedule exponential, the other half keeps clients that failed together from coming back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backoff {
    /// How often to ask again after the first attempt. Default 2; 0 switches retries off.
    pub retries: usize,
    /// The longest first wait. Default 500 ms.
    pub first: Duration,
    /// The longest wait of the schedule. Default 8 s.
    pub longest: Duration,
    /// The longest wait that a server can ask for; what is beyond it is cut to it. Default 60 s, the window in which providers
    /// count requests per minute.
    pub longest_asked: Duration,
    /// Makes the jitter the same in every run, for tests. Default `None`: it differs.
    pub seed: Option<u64>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            retries: 2,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(8),
            longest_asked: Duration::from_secs(60),
            seed: None,
        }
    }
}

impl Backoff {
    /// No retries.
    #[must_use]
    pub fn none() -> Self {
        Self { retries: 0, ..Self::default() }
    }

    /// The same with another number of retries.
    #[must_use]
    pub fn with_retries(mut self, retries: usize) -> Self {
        self.retries = retries;
        self
    }

    /// The same with other bounds for the first wait and for every wait of the schedule.
    #[must_use]
    pub fn with_waits(mut self, first: Duration, longest: Duration) -> Self {
        self.first = first;
        self.longest = longest;
        self
    }

    /// The same with another bound for what a server asks for.
    #[must_use]
    pub fn with_longest_asked(mut self, longest_asked: Duration) -> Self {
        self.longest_asked = longest_asked;
        self
    }

    /// The same with jitter that is the same in every run.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The waits of one request, from its first failure on.
    #[must_use]
    pub fn waits(&self) -> Waits {
        // backon adds up to as much again to each wait, so it is given the halves.
        let builder = ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(self.first.min(self.longest) / 2)
            .with_max_delay(self.longest / 2)
            .with_max_times(self.retries);
        let builder = match self.seed {
            Some(seed) => builder.with_jitter_seed(seed),
            None => builder,
        };
        Waits { schedule: builder.build(), longest_asked: self.longest_asked }
    }
}

/// The waits of one request.
///
/// ```
/// use std::time::Duration;
/// use provider_http::backoff::Backoff;
///
/// let mut waits = Backoff::default().waits();
/// let own = waits.next_wait(None).expect("a first retry");
/// assert!((Duration::from_millis(250)..=Duration::from_millis(500)).contains(&own));
/// // The server knows better.
/// assert_eq!(waits.next_wait(Some(Duration::from_secs(3))), Some(Duration::from_secs(3)));
/// assert_eq!(waits.next_wait(None), None);
/// ```
#[derive(Debug)]
pub struct Waits {
    schedule: ExponentialBackoff,
    longest_asked: Duration,
}

impl Waits {
    /// How long to wait before the next attempt; `None` if there is none left.
    ///
    /// `asked` is what the server said, as [`retry_after`] reads it. It goes before the schedule, up to
    /// [`Backoff::longest_asked`], and uses up one of the retries.
    pub fn next_wait(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let own = self.schedule.next()?;
        Some(asked.map_or(own, |asked| asked.min(self.longest_asked)))
    }
}

/// How long the server asks to wait: `retry-after-ms`, else `Retry-After` in seconds or as an HTTP date.
///
/// `now` is what a date is measured from; a date that has passed is no wait. Fractions are accepted, as some providers send
/// them. A value that is negative or no time at all is as good as none; one too large for a [`Duration`] is [`Duration::MAX`].
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds =
        text(HeaderName::from_static("retry-after-ms")).and_then(|value| number(value, 1000.0));
    milliseconds.or_else(|| {
        let value = text(RETRY_AFTER)?;
        let date = || httpdate::parse_http_date(value).ok();
        number(value, 1.0).or_else(|| date().map(|date| date.duration_since(now).unwrap_or_default()))
    })
}

/// A decimal number of units, of which `per_second` make a second.
fn number(value: &str, per_second: f64) -> Option<Duration> {
    let decimal = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = value.parse::<f64>().ok().filter(|_| decimal)? / per_second;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}
