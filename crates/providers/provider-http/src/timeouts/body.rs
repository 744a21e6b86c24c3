//! Response bodies that are read only with timeouts.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Request, Response};

use super::{Clock, Deadline, Timeouts};
use crate::transport::{ByteStream, Transport, TransportError};

/// Maximum number of pieces returned in a row. Then the body is pending once, so that deadlines are checked and
/// other tasks run, however fast the server or the transport is.
const MOST_IN_A_ROW: u8 = 64;

/// Sends the request with timeouts: `first_byte` from here until the body's first byte, `idle` from then on.
///
/// # Cancellation
///
/// As [`Transport::send`]. When a timeout expires, the exchange is dropped.
///
/// # Errors
///
/// Those of the transport, and [`TransportError::TimedOut`].
pub(crate) async fn send(
    transport: &dyn Transport,
    request: Request<Bytes>,
    timeouts: &Timeouts,
) -> Result<Response<UnreadBody>, TransportError> {
    let mut first_byte = Deadline::new(Clock::FirstByte, timeouts.first_byte_timeout);
    let response = first_byte.limit(transport.send(request)).await??;
    let idle = Deadline::new(Clock::Idle, timeouts.idle_timeout);
    Ok(response.map(|body| UnreadBody {
        body: TimedBody { body: Some(body), deadline: first_byte, idle: Some(idle), in_a_row: 0 },
        error_body_timeout: timeouts.error_body_timeout,
    }))
}

/// An unread response body. The status decides whether it is read as an answer or as an error report.
#[derive(Debug)]
pub(crate) struct UnreadBody {
    body: TimedBody,
    error_body_timeout: Duration,
}

impl UnreadBody {
    /// Returns the body of an answer, whose duration is not limited while bytes arrive.
    pub(crate) fn into_answer(self) -> TimedBody {
        self.body
    }

    /// Reads the beginning of the body of an error: at most `longest` bytes. If the body breaks, stalls or does
    /// not end, returns the bytes received within [`Timeouts::error_body_timeout`].
    pub(crate) async fn into_report(mut self, longest: usize) -> Vec<u8> {
        let mut report = Vec::new();
        let read = async {
            // Pieces may be empty, so their number is limited as well.
            for _ in 0..longest {
                let Some(Ok(bytes)) = self.body.next().await else { return };
                let room = longest.saturating_sub(report.len());
                report.extend_from_slice(bytes.get(..room).unwrap_or(&bytes));
                if report.len() >= longest {
                    return;
                }
            }
        };
        // After a timeout, the bytes received so far are used.
        let _cut_off = Deadline::new(Clock::ErrorBody, Some(self.error_body_timeout)).limit(read).await;
        report
    }
}

/// A response body with its timeouts. It ends after an error, and has released the connection by then.
pub(crate) struct TimedBody {
    /// `None` once the body has ended, failed or timed out.
    body: Option<ByteStream>,
    deadline: Deadline,
    /// Replaces `deadline` after the first byte.
    idle: Option<Deadline>,
    /// Number of pieces returned in a row.
    in_a_row: u8,
}

impl Stream for TimedBody {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        let polled = if this.in_a_row < MOST_IN_A_ROW {
            body.as_mut().poll_next(cx)
        } else {
            cx.waker().wake_by_ref();
            Poll::Pending
        };
        this.in_a_row = if polled.is_ready() { this.in_a_row + 1 } else { 0 };
        let item = match polled {
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
