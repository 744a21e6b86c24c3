//! `Clock` and `TimedOut`: which timeout expired, and after how long.

use std::fmt;
use std::time::Duration;

/// One of the [`Timeouts`](crate::timeouts::Timeouts).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// [`Timeouts::connect_timeout`](crate::timeouts::Timeouts::connect_timeout).
    Connect,
    /// [`Timeouts::first_byte_timeout`](crate::timeouts::Timeouts::first_byte_timeout).
    FirstByte,
    /// [`Timeouts::idle_timeout`](crate::timeouts::Timeouts::idle_timeout).
    Idle,
    /// [`Timeouts::progress_timeout`](crate::timeouts::Timeouts::progress_timeout).
    Progress,
    /// [`Timeouts::whole_body_timeout`](crate::timeouts::Timeouts::whole_body_timeout).
    WholeBody,
    /// [`Timeouts::error_body_timeout`](crate::timeouts::Timeouts::error_body_timeout).
    ErrorBody,
}

/// A timeout that expired.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{clock} within {after:?}")]
#[non_exhaustive]
pub struct TimedOut {
    /// The timeout that expired.
    pub clock: Clock,
    /// The duration of the timeout.
    pub after: Duration,
}

impl TimedOut {
    pub(crate) fn new(clock: Clock, after: Duration) -> Self {
        Self { clock, after }
    }
}

/// Writes the event that did not happen in time.
impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "no connection to the server",
            Self::FirstByte => "no byte of the answer",
            Self::Idle => "no further byte of the answer",
            Self::Progress => "no further event of the answer",
            Self::WholeBody => "no end of the answer",
            Self::ErrorBody => "no end of the error",
        })
    }
}
