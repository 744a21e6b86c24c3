//! The clocks of an exchange: how long to wait for a connection, for the first byte, for the next one, for the next event.
//!
//! None of them limits how long a streamed answer may take, because a long answer is a healthy one. What is not streamed has to
//! end. A clock runs only while somebody waits: what is ready is taken before any deadline is looked at, and a consumer that takes
//! its time is not a stalled server.
//!
//! A body can only be read with its clocks: [`send`] gives an [`UnreadBody`], which becomes a [`TimedBody`] or the beginning of a
//! report. What waits for what:
//!
//! | a wait for | ends by |
//! | --- | --- |
//! | name lookup, TCP, a proxy, TLS | [`Timeouts::connect`] |
//! | a free connection, the upload, the head, interim responses, the first byte of the body | [`Timeouts::first_byte`] |
//! | the next byte, the end of the framing, trailers | [`Timeouts::idle`] |
//! | the next event of a stream | [`Timeouts::progress`] |
//! | the end of a body that is no stream | [`Timeouts::whole_body`], and [`SseLimits::event`](crate::sse::SseLimits::event) bytes |
//! | the end of an error's body | [`Timeouts::error_body`], and 64 KiB |
//! | more of the answer after its finish reason | the grace that a provider has |
//! | the end of the body after the end marker | 250 ms, or the grace if that is shorter |
//! | the next attempt | [`Backoff::longest`](crate::backoff::Backoff::longest) and [`longest_asked`](crate::backoff::Backoff::longest_asked) |
//!
//! Closing a connection is waited for by nobody.

use std::time::Duration;

mod body;
mod deadline;
#[cfg(test)]
mod tests;

pub use crate::transport::{Clock, TimedOut};
pub use body::{TimedBody, UnreadBody, send};
pub use deadline::Deadline;

/// How long to wait for what. `None` switches a clock off; that for the body of an error is always on.
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
    /// From the first byte of a body that is no event stream to its end. Default 15 min: some servers keep the connection alive
    /// with blanks until a whole answer is there, DeepSeek for 10 min.
    pub whole_body: Option<Duration>,
    /// From the head of a response that reports an error to the end of its body. Default 10 s. What came by then is used: the
    /// status says what failed, and the body only says why.
    pub error_body: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Some(Duration::from_secs(10)),
            first_byte: Some(Duration::from_secs(300)),
            idle: Some(Duration::from_secs(120)),
            progress: None,
            whole_body: Some(Duration::from_secs(15 * 60)),
            error_body: Duration::from_secs(10),
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

    /// The same with another limit for a body that is no event stream.
    #[must_use]
    pub fn with_whole_body(mut self, whole_body: Option<Duration>) -> Self {
        self.whole_body = whole_body;
        self
    }

    /// The same with another limit for the body of an error.
    #[must_use]
    pub fn with_error_body(mut self, error_body: Duration) -> Self {
        self.error_body = error_body;
        self
    }
}
