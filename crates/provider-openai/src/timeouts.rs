//! The clocks of an exchange: how long to wait for a connection, for the first byte, for the next one, for the next event.
//!
//! None of them limits how long an answer may take, because a long answer is a healthy one. A clock runs only while somebody
//! waits: what is ready is taken before any deadline is looked at, and a consumer that takes its time is not a stalled server.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http::{Request, Response};

use crate::transport::{ByteStream, Transport, TransportError};

mod deadline;
#[cfg(test)]
mod tests;

pub use deadline::Deadline;

/// How long to wait for what. `None` switches a clock off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// For a connection: name lookup, TCP and TLS handshake together. Default 10 s, which leaves room for the
    /// retransmissions of a lost first packet after 1, 3 and 7 s. The transport is given it when it is made.
    pub connect: Option<Duration>,
    /// From sending the request to the first byte of the body. Default 300 s: a local server reads a long prompt, and a
    /// reasoning model thinks, before anything comes.
    pub first_byte: Option<Duration>,
    /// From one byte of the body to the next. Comments that only keep the connection alive count. Default 120 s: providers
    /// that let a model think in the middle of an answer send such comments, and usual gateways give up on a silent
    /// connection after 60 to 100 s, so that one which is silent for longer is most likely dead.
    pub idle: Option<Duration>,
    /// From one event to the next, whatever other bytes come. Off by default: a provider that sends comments says that it is
    /// working.
    pub progress: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Some(Duration::from_secs(10)),
            first_byte: Some(Duration::from_secs(300)),
            idle: Some(Duration::from_secs(120)),
            progress: None,
        }
    }
}

impl Timeouts {
    /// The same with another limit for connecting.
    #[must_use]
    pub fn with_connect(mut self, connect: Option<Duration>) -> Self {
        self.connect = connect;
        self
    }

    /// The same with another limit for the first byte.
    #[must_use]
    pub fn with_first_byte(mut self, first_byte: Option<Duration>) -> Self {
        self.first_byte = first_byte;
        self
    }

    /// The same with another limit between bytes.
    #[must_use]
    pub fn with_idle(mut self, idle: Option<Duration>) -> Self {
        self.idle = idle;
        self
    }

    /// The same with another limit between events.
    #[must_use]
    pub fn with_progress(mut self, progress: Option<Duration>) -> Self {
        self.progress = progress;
        self
    }
}

/// One of the clocks in [`Timeouts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// [`Timeouts::connect`].
    Connect,
    /// [`Timeouts::first_byte`].
    FirstByte,
    /// [`Timeouts::idle`].
    Idle,
    /// [`Timeouts::progress`].
    Progress,
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
        })
    }
}

/// Sends the request with the clocks running: `first_byte` from here until the body's first byte, `idle` from then on.
///
/// # Cancellation
///
/// As [`Transport::send`]. When a clock runs out, the exchange is given up as if it had been dropped.
///
/// # Errors
///
/// Those of the transport, and [`TransportError::TimedOut`].
pub async fn send(
    transport: &dyn Transport,
    request: Request<Vec<Bytes>>,
    timeouts: &Timeouts,
) -> Result<Response<TimedBody>, TransportError> {
    let mut first_byte = Deadline::new(Clock::FirstByte, timeouts.first_byte);
    let response = first_byte.limit(transport.send(request)).await??;
    let idle = Deadline::new(Clock::Idle, timeouts.idle);
    Ok(response.map(|body| TimedBody { body: Some(body), deadline: first_byte, idle: Some(idle) }))
}

/// A response body with its clocks. Ends after an error, and has let go of the connection by then.
pub struct TimedBody {
    /// Gone once the body has ended, failed or timed out.
    body: Option<ByteStream>,
    deadline: Deadline,
    /// Takes the place of `deadline` when the first byte has come.
    idle: Option<Deadline>,
}

impl Stream for TimedBody {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        let item = match body.as_mut().poll_next(cx) {
            Poll::Ready(item) => item,
            Poll::Pending => Some(Err(ready!(this.deadline.poll_elapsed(cx)).into())),
        };
        match &item {
            Some(Ok(bytes)) if bytes.is_empty() => {}
            Some(Ok(_)) => match this.idle.take() {
                Some(idle) => this.deadline = idle,
                None => this.deadline.stop(),
            },
            Some(Err(_)) | None => this.body = None,
        }
        Poll::Ready(item)
    }
}

impl fmt::Debug for TimedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedBody").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
