//! The server's answer to one request.

use super::step::{self, Step};
use crate::Gate;
use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use std::borrow::Borrow;

/// The way in which a body is delimited on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// `transfer-encoding: chunked`; each [`Step::Write`] is one HTTP chunk. The connection can be used again.
    Chunked,
    /// `content-length`. The connection can be used again.
    ContentLength,
    /// Neither: the body ends when the server closes the connection.
    UntilClose,
    /// The steps write everything, the status line included, and the server closes the connection at the end.
    Raw,
}

/// The server's answer to one request: status, headers, and a body as a list of [`Step`]s.
///
/// Offsets count the bytes of the body, without head and framing; one beyond the end means the end. Splits add
/// boundaries to the existing ones. A fault takes effect at its offset, whatever the splits are, and the
/// earliest ending wins. A clone shares the gates.
///
/// # Example
///
/// ```
/// use advisor_testkit::{Gate, Reply};
///
/// let gate = Gate::new();
/// let reply = Reply::sse("data: {\"a\":1}\n\ndata: [DONE]\n\n")
///     .split_at(&[3, 12])
///     .gate_after(15, gate.clone())
///     .reset_after(20);
/// assert_eq!(reply.pieces().concat(), b"data: {\"a\":1}\n\ndata:");
/// ```
#[derive(Clone, Debug)]
#[must_use = "a reply does nothing until a server gives it"]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) framing: Framing,
    pub(super) before_head: Option<Gate>,
    pub(super) steps: Vec<Step>,
    /// The length of the whole body, even if it is cut.
    pub(super) declared_length: usize,
}

impl Reply {
    /// Creates a reply with status 200 and a stream of server-sent events (`content-type: text/event-stream`),
    /// chunked.
    pub fn sse(body: impl Into<Bytes>) -> Self {
        Self::new(200, Framing::Chunked, body.into()).with_header("content-type", "text/event-stream")
    }

    /// Creates a reply with status 200 and lines of JSON (`content-type: application/x-ndjson`), chunked.
    pub fn ndjson(body: impl Into<Bytes>) -> Self {
        Self::new(200, Framing::Chunked, body.into()).with_header("content-type", "application/x-ndjson")
    }

    /// Creates a reply with a JSON body and a `content-length`.
    pub fn json(status: u16, body: impl Borrow<Value>) -> Self {
        let body = Bytes::from(body.borrow().to_string());
        Self::new(status, Framing::ContentLength, body).with_header("content-type", "application/json")
    }

    /// Creates a reply with an HTML page and a `content-length`, as a proxy sends it in place of a provider.
    pub fn html(status: u16, page: impl Into<Bytes>) -> Self {
        Self::new(status, Framing::ContentLength, page.into())
            .with_header("content-type", "text/html; charset=utf-8")
    }

    /// Creates a reply with a status and an empty body.
    pub fn status(status: u16) -> Self {
        Self::new(status, Framing::ContentLength, Bytes::new())
    }

    /// Creates a reply of these bytes in place of a whole HTTP answer, status line included. The connection
    /// closes after it.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::new(200, Framing::Raw, bytes.into())
    }

    /// Creates a reply that sends nothing until the client disconnects.
    pub fn hang() -> Self {
        Self::raw("").stall_after(0)
    }

    /// Creates a reply that sends nothing and closes the connection.
    pub fn hang_up() -> Self {
        Self::raw("").cut_after(0)
    }

    /// Creates a reply that sends nothing and resets the connection.
    pub fn reset() -> Self {
        Self::raw("").reset_after(0)
    }

    /// Sets a header, replacing one of this name (in any case). Name and value are written unchanged.
    ///
    /// The server adds `content-length`, `transfer-encoding` or `connection: close` as the [`Framing`] needs
    /// it, unless the reply has a header of that name. So a reply can have wrong headers.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the framing of the body.
    pub fn with_framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Replaces the body with these steps.
    pub fn with_steps(mut self, steps: Vec<Step>) -> Self {
        self.declared_length = step::length(&steps);
        self.steps = steps;
        self
    }

    /// Splits the body at these offsets; see [`split::pieces`](crate::split::pieces).
    pub fn split_at(mut self, offsets: &[usize]) -> Self {
        self.steps = step::split_at(self.steps, offsets);
        self
    }

    /// Splits the body into pieces of `length` bytes; 0 counts as 1.
    pub fn split_every(self, length: usize) -> Self {
        let body = step::length(&self.steps);
        let offsets: Vec<usize> = (0..body).step_by(length.max(1)).collect();
        self.split_at(&offsets)
    }

    /// Closes the connection after this many bytes of the body. The last chunk, or a part of the
    /// `content-length`, is missing.
    pub fn cut_after(self, offset: usize) -> Self {
        self.insert(offset, Step::Cut)
    }

    /// Resets the connection after this many bytes of the body.
    ///
    /// A reset discards the bytes that the client's side of the network has not taken yet. Loopback on Linux
    /// delivers up to a socket buffer of bytes at once. To be certain that the client has seen them, put a gate
    /// before the reset and release it then.
    pub fn reset_after(self, offset: usize) -> Self {
        self.insert(offset, Step::Reset)
    }

    /// Stops writing after this many bytes of the body and keeps the connection open until the client
    /// disconnects.
    pub fn stall_after(self, offset: usize) -> Self {
        self.insert(offset, Step::Stall)
    }

    /// Waits at `gate` after this many bytes of the body have been written.
    pub fn gate_after(self, offset: usize, gate: Gate) -> Self {
        self.insert(offset, Step::Wait(gate))
    }

    /// Waits at `gate` before the first byte of the answer, after the request has been read.
    pub fn gate_head(mut self, gate: Gate) -> Self {
        self.before_head = Some(gate);
        self
    }

    /// Returns the pieces of the body in order, one for each HTTP chunk of a chunked reply.
    pub fn pieces(&self) -> Vec<Bytes> {
        let pieces = self.steps.iter().filter_map(|step| match step {
            Step::Write(bytes) if !bytes.is_empty() => Some(bytes.clone()),
            _ => None,
        });
        pieces.collect()
    }

    /// Returns the status line and the headers as they are written; empty for [`Framing::Raw`].
    pub(super) fn head(&self) -> Vec<u8> {
        if self.framing == Framing::Raw {
            return Vec::new();
        }
        let status = StatusCode::from_u16(self.status).ok();
        let reason = status.and_then(|status| status.canonical_reason());
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason.unwrap_or(""));
        let (name, value) = match self.framing {
            Framing::Chunked => ("transfer-encoding", "chunked".to_owned()),
            Framing::ContentLength => ("content-length", self.declared_length.to_string()),
            Framing::UntilClose | Framing::Raw => ("connection", "close".to_owned()),
        };
        let mut set = self.headers.iter();
        if !set.any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    fn new(status: u16, framing: Framing, body: Bytes) -> Self {
        let reply = Self {
            status,
            headers: Vec::new(),
            framing,
            before_head: None,
            steps: Vec::new(),
            declared_length: 0,
        };
        reply.with_steps(vec![Step::Write(body)])
    }

    fn insert(mut self, offset: usize, step: Step) -> Self {
        self.steps = step::insert_after(self.steps, offset, step);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn head(reply: &Reply) -> String {
        String::from_utf8(reply.head()).unwrap()
    }

    #[test]
    fn heads_say_what_the_framing_needs() {
        assert_eq!(
            head(&Reply::sse("x")),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n"
        );
        assert_eq!(
            head(&Reply::json(429, json!({"a": 1})).with_header("retry-after", "2")),
            "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 7\r\ncontent-type: application/json\r\nretry-after: 2\r\n\r\n"
        );
        assert_eq!(head(&Reply::status(599)), "HTTP/1.1 599 \r\ncontent-length: 0\r\n\r\n");
        assert_eq!(
            head(&Reply::html(502, "<p>").with_framing(Framing::UntilClose)),
            "HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\ncontent-type: text/html; charset=utf-8\r\n\r\n"
        );
        assert_eq!(head(&Reply::raw("x")), "");
    }

    #[test]
    fn header_replaces_namesake_and_server_default() {
        let reply = Reply::json(200, json!({}))
            .with_header("Content-Type", "text/plain")
            .with_header("Content-Length", "99");
        assert_eq!(head(&reply), "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99\r\n\r\n");
    }

    #[test]
    fn splits_add_up() {
        let reply = Reply::sse("abcdefgh").split_every(3).split_at(&[1]);
        assert_eq!(reply.pieces(), ["a", "bc", "def", "gh"]);
        assert_eq!(Reply::sse("abc").split_every(0).pieces(), ["a", "b", "c"]);
        assert!(Reply::sse("").split_every(1).pieces().is_empty());
    }
}
