//! Server-sent events, decoded from bytes.
//!
//! [`SseDecoder`] does no I/O: the caller pushes the bytes of a response body as they arrive and takes events out.
//! It follows the [WHATWG rules for interpreting an event stream][rules]. They cover the byte-order mark, LF, CRLF
//! and CR line ends, comments, several `data` lines, `event` and unknown fields. `id` and `retry`, which are for a
//! connection that is made again, are unknown. The events do not depend on how the bytes were split.
//!
//! It departs from those rules where a client of language models must be stricter or more complete than a browser:
//!
//! - **Invalid UTF-8 is an error** with its position in the stream. A browser would put U+FFFD into tool
//!   arguments.
//! - **A last event without its blank line** is returned, marked [`trailing`](SseEvent::trailing), once the body
//!   has [ended](SseDecoder::finish). A browser drops it. Some servers end like this, so the caller uses it if it
//!   parses. A last line that is cut within a character is dropped with its event: the body was truncated, not
//!   malformed.
//! - **Lines and events are bounded** ([`SseLimits`]); beyond the limit the decoder returns a typed error.
//!
//! [rules]: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

use std::fmt;
use std::mem;
use std::ops::Range;

use memchr::memchr2;

#[cfg(test)]
mod tests;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Maximum bytes that one stream may make the decoder buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseLimits {
    /// Maximum bytes of a line, without its line end. Default 8 MiB: a whole answer with an image in one `data`
    /// line fits.
    pub line: usize,
    /// Maximum bytes of the data of one event, all its `data` lines together. Default 16 MiB.
    pub event: usize,
}

impl Default for SseLimits {
    fn default() -> Self {
        Self { line: 8 << 20, event: 16 << 20 }
    }
}

/// The reason why an event stream cannot be decoded further. Positions count bytes from the start of the body,
/// including a byte-order mark.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// A line holds bytes that are not UTF-8.
    #[error("the event stream is not valid UTF-8 at byte {position}")]
    InvalidUtf8 {
        /// Position of the first invalid byte.
        position: u64,
    },
    /// A line or an event exceeds its limit in [`SseLimits`].
    #[error(
        "the {part} of the event stream at byte {position} is longer than {limit} bytes; if that is expected, raise `SseLimits::{part}`"
    )]
    TooLarge {
        /// The part that is too large: `"line"` or `"event"`.
        part: &'static str,
        /// The exceeded limit, in bytes.
        limit: usize,
        /// Position of the line that exceeded the limit.
        position: u64,
    },
}

/// One event, borrowed from the decoder until the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent<'a> {
    /// The event's name; `None` is the standard's default name, `message`.
    pub event: Option<&'a str>,
    /// The values of its `data` lines, joined by `\n`. Empty for a bare `data:` line, which some servers send to
    /// keep a connection alive.
    pub data: &'a str,
    /// Whether the body ended before the blank line that completes an event: the data may be cut anywhere.
    pub trailing: bool,
    /// Position of the event's first `data` line, in bytes from the start of the stream.
    pub position: u64,
}

/// An incremental decoder: bytes in, events out.
///
/// Every byte is searched once, for pieces of any size. The buffers are reused. After an error every further call
/// returns the same error.
///
/// ```
/// use provider_http::sse::{SseDecoder, SseError, SseLimits};
///
/// # fn main() -> Result<(), SseError> {
/// let mut decoder = SseDecoder::new(SseLimits::default());
/// let mut texts = Vec::new();
/// for piece in ["data: Hel", "lo\n\n: still there\n", "data: [DONE]"] {
///     decoder.push(piece.as_bytes());
///     while let Some(event) = decoder.next_event()? {
///         texts.push(event.data.to_owned());
///     }
/// }
/// assert_eq!(texts, ["Hello"]);
///
/// // The body has ended, and its last event has no blank line.
/// decoder.finish();
/// let last = decoder.next_event()?.map(|event| (event.data, event.trailing));
/// assert_eq!(last, Some(("[DONE]", true)));
/// assert_eq!((decoder.events(), decoder.comments()), (2, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct SseDecoder {
    limits: SseLimits,
    /// The bytes that were pushed last, behind those of an unfinished line.
    buffer: Vec<u8>,
    /// Position of the buffer in the stream.
    position: u64,
    /// The place of the next line in the buffer.
    line: usize,
    /// The number of bytes of the buffer that hold no further line end.
    searched: usize,
    /// Whether the last line ended with CR: a following LF belongs to it.
    after_cr: bool,
    /// Whether a line was returned: no byte-order mark can follow.
    has_begun: bool,
    name: String,
    data: String,
    /// The position of the first `data` line. An event with empty data is an event.
    data_position: Option<u64>,
    /// Whether the event was returned: the next call starts a new one.
    delivered: bool,
    ended: bool,
    failed: Option<SseError>,
    events: u64,
    comments: u64,
}

impl SseDecoder {
    /// Creates a decoder at the start of a stream.
    #[must_use]
    pub fn new(limits: SseLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Adds the next bytes of the body.
    ///
    /// Call it when [`next_event`](Self::next_event) has returned `None`. Otherwise the remaining bytes are kept,
    /// without a limit. Bytes after [`finish`](Self::finish) or after an error are ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.ended || self.failed.is_some() {
            return;
        }
        self.buffer.drain(..self.line);
        self.position += self.line as u64;
        self.searched -= self.line;
        self.line = 0;
        let more = growth(self.buffer.len(), self.buffer.capacity(), bytes.len(), self.limits.line);
        self.buffer.reserve_exact(more);
        self.buffer.extend_from_slice(bytes);
    }

    /// Marks the end of the body, so that [`next_event`](Self::next_event) returns a last event without a blank
    /// line.
    pub fn finish(&mut self) {
        self.ended = true;
    }

    /// Returns the next event; `None` if more bytes are needed or, after [`finish`](Self::finish), if no event
    /// remains.
    ///
    /// # Errors
    ///
    /// [`SseError::InvalidUtf8`] and [`SseError::TooLarge`]. Events that were complete before the error are
    /// returned before it.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseError> {
        if mem::take(&mut self.delivered) {
            self.clear_event();
        }
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let trailing = match self.find() {
            Ok(Some(trailing)) => trailing,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.failed.insert(error).clone()),
        };
        self.delivered = true;
        self.events += 1;
        let event = Some(&*self.name).filter(|name| !name.is_empty());
        let position = self.data_position.unwrap_or_default();
        Ok(Some(SseEvent { event, data: &self.data, trailing, position }))
    }

    /// Returns the number of returned events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the number of comment lines. A comment is no event, but it shows that the server is alive.
    #[must_use]
    pub fn comments(&self) -> u64 {
        self.comments
    }

    /// Returns the data so far of an incomplete event.
    pub(crate) fn unfinished_data(&self) -> &str {
        if self.delivered { "" } else { &self.data }
    }

    /// Collects lines until an event is complete. Returns whether it lacks its blank line.
    fn find(&mut self) -> Result<Option<bool>, SseError> {
        while let Some(line) = self.next_line()? {
            if !line.is_empty() {
                self.add(line)?;
            } else if self.data_position.is_some() {
                return Ok(Some(false));
            } else {
                self.clear_event();
            }
        }
        let rest = self.without_mark(self.line..self.buffer.len());
        if self.ended && !rest.is_empty() {
            self.line = self.buffer.len();
            let bytes = self.buffer.get(rest.clone()).unwrap_or_default();
            if str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none()) {
                self.clear_event();
            } else {
                self.add(rest)?;
            }
        }
        Ok((self.ended && self.data_position.is_some()).then_some(true))
    }

    /// Returns the place of the next complete line, without its end.
    fn next_line(&mut self) -> Result<Option<Range<usize>>, SseError> {
        if self.after_cr && self.line < self.buffer.len() {
            self.after_cr = false;
            self.line += usize::from(self.buffer.get(self.line) == Some(&b'\n'));
            self.searched = self.searched.max(self.line);
        }
        let found = match self.buffer.get(self.searched..).unwrap_or_default() {
            // A blank line ends each event.
            [b'\n', ..] => Some(0),
            rest => memchr2(b'\n', b'\r', rest),
        };
        let end = self.searched + found.unwrap_or(self.buffer.len() - self.searched);
        if end - self.line > self.limits.line {
            let position = self.position + self.line as u64;
            return Err(SseError::TooLarge { part: "line", limit: self.limits.line, position });
        }
        self.searched = end;
        if found.is_none() {
            return Ok(None);
        }
        self.after_cr = self.buffer.get(end) == Some(&b'\r');
        let line = self.without_mark(self.line..end);
        self.has_begun = true;
        (self.line, self.searched) = (end + 1, end + 1);
        Ok(Some(line))
    }

    /// Returns the place of a line without a byte-order mark, which only the first one can have.
    fn without_mark(&self, line: Range<usize>) -> Range<usize> {
        let has_mark = !self.has_begun
            && self.buffer.get(line.clone()).is_some_and(|bytes| bytes.starts_with(BYTE_ORDER_MARK));
        if has_mark { line.start + BYTE_ORDER_MARK.len()..line.end } else { line }
    }

    /// Adds a line that is not blank.
    fn add(&mut self, line: Range<usize>) -> Result<(), SseError> {
        let position = self.position + line.start as u64;
        let bytes = self.buffer.get(line).unwrap_or_default();
        let text = simdutf8::basic::from_utf8(bytes).map_err(|_| {
            let valid = str::from_utf8(bytes).err().map_or(0, |error| error.valid_up_to());
            SseError::InvalidUtf8 { position: position + valid as u64 }
        })?;
        // Nearly all lines are data.
        let data = text.strip_prefix("data:").map(|value| ("data", value));
        let (field, value) = data.or_else(|| text.split_once(':')).unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => self.comments += 1,
            "event" => value.clone_into(&mut self.name),
            "data" => {
                let separator = if self.data_position.is_some() { "\n" } else { "" };
                let (length, limit) = (separator.len() + value.len(), self.limits.event);
                if self.data.len() + length > limit {
                    return Err(SseError::TooLarge { part: "event", limit, position });
                }
                self.data_position.get_or_insert(position);
                let more = growth(self.data.len(), self.data.capacity(), length, limit);
                self.data.reserve_exact(more);
                self.data.push_str(separator);
                self.data.push_str(value);
            }
            _ => {}
        }
        Ok(())
    }

    /// Clears the fields for the next event.
    fn clear_event(&mut self) {
        self.name.clear();
        self.data.clear();
        self.data_position = None;
    }
}

/// Returns the bytes to reserve, so that a buffer of this length takes `more`: its capacity doubles, but not far beyond the limit,
/// unless `more` needs it.
fn growth(length: usize, capacity: usize, more: usize, limit: usize) -> usize {
    let needed = length + more;
    if needed <= capacity { 0 } else { needed.max((capacity * 2).min(limit + more)) - length }
}

/// Shows the progress of the decoder, not its content.
impl fmt::Debug for SseDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseDecoder")
            .field("events", &self.events)
            .field("comments", &self.comments)
            .field("ended", &self.ended)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
