//! The schedule of retries, which is that of the core, and the wait that a server requests.

use std::time::{Duration, SystemTime};

pub use advisor_core::{Backoff, Waits};
use http::HeaderMap;
use http::header::{HeaderName, RETRY_AFTER};

#[cfg(test)]
mod tests;

/// Returns the wait that the server requests: `retry-after-ms`, else `Retry-After` in seconds or as an HTTP date.
///
/// A date is relative to `now`; a past date means no wait. Fractions are accepted, since some providers send them.
/// A negative or invalid value is ignored. A value too large for a [`Duration`] is [`Duration::MAX`].
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

/// Parses a decimal number of units, of which `per_second` make a second.
fn number(value: &str, per_second: f64) -> Option<Duration> {
    let decimal = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = value.parse::<f64>().ok().filter(|_| decimal)? / per_second;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}
