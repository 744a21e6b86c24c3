use std::fmt;
use std::time::Duration;

/// One of the clocks in [`Timeouts`](crate::timeouts::Timeouts).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// [`Timeouts::connect`](crate::timeouts::Timeouts::connect).
    Connect,
    /// [`Timeouts::first_byte`](crate::timeouts::Timeouts::first_byte).
    FirstByte,
    /// [`Timeouts::idle`](crate::timeouts::Timeouts::idle).
    Idle,
    /// [`Timeouts::progress`](crate::timeouts::Timeouts::progress).
    Progress,
    /// [`Timeouts::whole_body`](crate::timeouts::Timeouts::whole_body).
    WholeBody,
    /// [`Timeouts::error_body`](crate::timeouts::Timeouts::error_body).
    ErrorBody,
}

/// A clock ran out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{clock} within {after:?}")]
#[non_exhaustive]
pub struct TimedOut {
    /// Which one.
    pub clock: Clock,
    /// How long it ran.
    pub after: Duration,
}

impl TimedOut {
    /// The clock ran out after this time.
    #[must_use]
    pub fn new(clock: Clock, after: Duration) -> Self {
        Self { clock, after }
    }
}

/// What did not come.
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
