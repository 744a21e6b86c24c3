//! Response bodies, which are read only with their clocks.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Request, Response};

use super::{Clock, Deadline, Timeouts};
use crate::transport::{ByteStream, Transport, TransportError};

/// How many pieces are given one after the other. Then whoever reads waits once, so that clocks are looked at and other tasks come to
/// their turn, however fast a server is and whatever the transport does.
const MOST_IN_A_ROW: u8 = 64;

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
) -> Result<Response<UnreadBody>, TransportError> {
    let mut first_byte = Deadline::new(Clock::FirstByte, timeouts.first_byte);
    let response = first_byte.limit(transport.send(request)).await??;
    let idle = Deadline::new(Clock::Idle, timeouts.idle);
    Ok(response.map(|body| UnreadBody {
        body: TimedBody { body: Some(body), deadline: first_byte, idle: Some(idle), in_a_row: 0 },
        error_body: timeouts.error_body,
    }))
}

/// A response body of which nothing was read. It is read as what the status says that it is.
#[derive(Debug)]
pub struct UnreadBody {
    body: TimedBody,
    error_body: Duration,
}

impl UnreadBody {
    /// The body of an answer, which may take as long as bytes come.
    #[must_use]
    pub fn into_answer(self) -> TimedBody {
        self.body
    }

    /// The beginning of the body of an error: at most `longest` bytes, and what came of them within
    /// [`Timeouts::error_body`] if the body breaks, stalls or does not end.
    pub async fn into_report(mut self, longest: usize) -> Vec<u8> {
        let mut report = Vec::new();
        let read = async {
            // Pieces may be empty, so they are counted, too.
            for _ in 0..longest {
                let Some(Ok(bytes)) = self.body.next().await else { return };
                let room = longest.saturating_sub(report.len());
                report.extend_from_slice(bytes.get(..room).unwrap_or(&bytes));
                if report.len() >= longest {
                    return;
                }
            }
        };
        // A report that is cut off is used as far as it came.
        let _cut_off = Deadline::new(Clock::ErrorBody, Some(self.error_body)).limit(read).await;
        report
    }
}

/// A response body with its clocks. Ends after an error, and has let go of the connection by then.
pub struct TimedBody {
    /// Gone once the body has ended, failed or timed out.
    body: Option<ByteStream>,
    deadline: Deadline,
    /// Takes the place of `deadline` when the first byte has come.
    idle: Option<Deadline>,
    /// How many pieces came one after the other.
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
