//! Timeouts of an exchange: for the connection, the first byte, the next byte and the next event.
//!
//! None of them limits the duration of a streamed answer, because a long answer is healthy. A body that is not
//! streamed must end. A timeout runs only while a reader waits. Ready data is returned before any deadline is
//! checked, and a slow consumer is not a stalled server.
//!
//! A body can only be read with its timeouts. Each wait has a limit:
//!
//! | wait for | limit |
//! | --- | --- |
//! | name lookup, TCP, a proxy, TLS | [`Timeouts::connect_timeout`] |
//! | a free connection, the upload, the head, interim responses, the first byte | [`Timeouts::first_byte_timeout`] |
//! | the next byte, the end of the framing, trailers | [`Timeouts::idle_timeout`] |
//! | the next event of a stream | [`Timeouts::progress_timeout`] |
//! | the end of an unstreamed body | [`Timeouts::whole_body_timeout`], [`SseLimits::event`](crate::sse::SseLimits) bytes |
//! | the end of an error's body | [`Timeouts::error_body_timeout`], and 64 KiB |
//! | more of the answer after its finish reason | [`Timeouts::after_finish_timeout`]; the answer is then complete |
//! | the end of the body after the end marker | 250 ms, or [`Timeouts::after_finish_timeout`] if that is shorter |
//! | the next attempt | `longest` and `max_retry_after` of [`Backoff`](crate::backoff::Backoff) |
//!
//! Nothing waits for a connection to close.

use std::time::Duration;

mod body;
mod deadline;
#[cfg(test)]
mod tests;

pub use crate::transport::{Clock, TimedOut};
pub(crate) use body::{TimedBody, UnreadBody, send};
pub(crate) use deadline::Deadline;

/// The timeouts of an exchange. `None` disables one; those without an option are always enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection: name lookup, TCP and TLS handshake together. Default 10 s, which allows retransmissions
    /// of a lost first packet after 1, 3 and 7 s. The transport receives it when it is created.
    pub connect_timeout: Option<Duration>,
    /// From sending the request to the first byte of the body. Default 300 s: a local server may read a long
    /// prompt first, and a reasoning model may think.
    pub first_byte_timeout: Option<Duration>,
    /// From one byte of the body to the next. Keep-alive comments count. Default 120 s. Providers that let a model
    /// think in the middle of an answer send such comments. Usual gateways drop a silent connection after 60 to
    /// 100 s, so one that is silent for longer is most likely dead.
    pub idle_timeout: Option<Duration>,
    /// From one event to the next; other bytes do not restart it. Default 30 min: a provider that sends comments reports
    /// that it is working, but one that sends nothing else would be waited for without an end.
    pub progress_timeout: Option<Duration>,
    /// From the first byte of a body that is no event stream to its end. Default 15 min: some servers keep the
    /// connection alive with blanks until a whole answer is ready, DeepSeek for 10 min.
    pub whole_body_timeout: Option<Duration>,
    /// From the head of an error response to the end of its body. Default 10 s. The bytes received by then are
    /// used: the status identifies the failure, and the body only explains it.
    pub error_body_timeout: Duration,
    /// From the finish reason to calls and usage that may follow it: a grace period. Default 5 s. It starts at the
    /// finish reason, and again at each later addition to the answer. Usage, comments and empty events do not
    /// extend it. When it has passed, the answer is complete. It delays only answers of servers that send no end
    /// marker and leave the connection open.
    pub after_finish_timeout: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_timeout: Some(Duration::from_secs(10)),
            first_byte_timeout: Some(Duration::from_secs(300)),
            idle_timeout: Some(Duration::from_secs(120)),
            progress_timeout: Some(Duration::from_secs(30 * 60)),
            whole_body_timeout: Some(Duration::from_secs(15 * 60)),
            error_body_timeout: Duration::from_secs(10),
            after_finish_timeout: Duration::from_secs(5),
        }
    }
}
