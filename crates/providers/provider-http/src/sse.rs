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

const BYTE_ORDER_MARK: char = '\u{FEFF}';

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
    /// The text that was pushed last, behind that of an unfinished line.
    text: String,
    /// The bytes behind it that do not make a character yet.
    cut: Vec<u8>,
    /// Whether the bytes behind it are no UTF-8.
    is_invalid: bool,
    /// Position of the text in the stream.
    position: u64,
    /// The place of the next line in the text.
    line: usize,
    /// The number of bytes of the text that hold no further line end.
    searched: usize,
    /// Whether the last line ended with CR: a following LF belongs to it.
    after_cr: bool,
    name: String,
    /// The data of earlier lines of the event.
    joined: String,
    /// The place in the text of the data that follows.
    data: Range<usize>,
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
        if self.ended || self.is_invalid || self.failed.is_some() {
            return;
        }
        if mem::take(&mut self.delivered) {
            self.clear_event();
        }
        if !self.data.is_empty() {
            self.join();
        }
        self.text.drain(..self.line);
        self.position += self.line as u64;
        self.searched -= self.line;
        self.line = 0;
        let whole = (!self.cut.is_empty()).then(|| [&*mem::take(&mut self.cut), bytes].concat());
        let bytes = whole.as_deref().unwrap_or(bytes);
        let text = simdutf8::basic::from_utf8(bytes).unwrap_or_else(|_| self.beginning(bytes));
        let begins = self.position == 0 && self.text.is_empty();
        let behind = text.strip_prefix(BYTE_ORDER_MARK).filter(|_| begins).unwrap_or(text);
        self.position += (text.len() - behind.len()) as u64;
        let more = growth(self.text.len(), self.text.capacity(), behind.len(), self.limits.line);
        self.text.reserve_exact(more);
        self.text.push_str(behind);
    }

    /// Returns the text with which these bytes begin, and notes what is behind it.
    #[cold]
    fn beginning<'a>(&mut self, bytes: &'a [u8]) -> &'a str {
        let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let rest = bytes.get(text.len()..).unwrap_or_default();
        match str::from_utf8(rest) {
            Err(error) if error.error_len().is_none() => self.cut = rest.to_vec(),
            _ => self.is_invalid = true,
        }
        text
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
        if !self.joined.is_empty() {
            self.join();
        }
        self.delivered = true;
        self.events += 1;
        let event = Some(&*self.name).filter(|name| !name.is_empty());
        let position = self.data_position.unwrap_or_default();
        Ok(Some(SseEvent { event, data: self.data(), trailing, position }))
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

    /// Returns the data of an incomplete event, or its beginning.
    pub(crate) fn unfinished_data(&self) -> &str {
        if self.delivered { "" } else { self.data() }
    }

    /// Returns the data of one line, or what is joined of several.
    fn data(&self) -> &str {
        let line = self.text.get(self.data.clone()).unwrap_or_default();
        if self.joined.is_empty() { line } else { &self.joined }
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
        if self.is_invalid {
            return Err(SseError::InvalidUtf8 { position: self.position + self.text.len() as u64 });
        }
        let rest = self.line..self.text.len();
        if self.ended && !self.cut.is_empty() {
            self.clear_event();
        } else if self.ended && !rest.is_empty() {
            self.line = self.text.len();
            self.add(rest)?;
        }
        Ok((self.ended && self.data_position.is_some()).then_some(true))
    }

    /// Returns the place of the next complete line, without its end.
    fn next_line(&mut self) -> Result<Option<Range<usize>>, SseError> {
        let text = self.text.as_bytes();
        if self.after_cr && self.line < text.len() {
            self.after_cr = false;
            self.line += usize::from(text.get(self.line) == Some(&b'\n'));
            self.searched = self.searched.max(self.line);
        }
        let found = match text.get(self.searched..).unwrap_or_default() {
            // A blank line ends each event.
            [b'\n', ..] => Some(0),
            rest => memchr2(b'\n', b'\r', rest),
        };
        let end = self.searched + found.unwrap_or(text.len() - self.searched);
        if end - self.line > self.limits.line {
            let position = self.position + self.line as u64;
            return Err(SseError::TooLarge { part: "line", limit: self.limits.line, position });
        }
        self.searched = end;
        if found.is_none() {
            return Ok(None);
        }
        self.after_cr = text.get(end) == Some(&b'\r');
        let line = self.line..end;
        (self.line, self.searched) = (end + 1, end + 1);
        Ok(Some(line))
    }

    /// Adds a line that is not blank.
    fn add(&mut self, line: Range<usize>) -> Result<(), SseError> {
        let text = self.text.get(line.clone()).unwrap_or_default();
        // Nearly all lines are data.
        let data = text.strip_prefix("data:").map(|value| ("data", value));
        let (field, value) = data.or_else(|| text.split_once(':')).unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => self.comments += 1,
            "event" => value.clone_into(&mut self.name),
            "data" => {
                let (place, limit) = (line.end - value.len()..line.end, self.limits.event);
                let position = self.position + line.start as u64;
                let is_first = self.data_position.is_none();
                let before = self.joined.len() + self.data.len() + usize::from(!is_first);
                if before + place.len() > limit {
                    return Err(SseError::TooLarge { part: "event", limit, position });
                }
                if !is_first {
                    self.join();
                    self.joined.push('\n');
                }
                self.data_position.get_or_insert(position);
                self.data = place;
            }
            _ => {}
        }
        Ok(())
    }

    /// Joins the last line of data to the earlier ones.
    fn join(&mut self) {
        let line = self.text.get(mem::take(&mut self.data)).unwrap_or_default();
        // With room for the line end.
        let more = growth(self.joined.len(), self.joined.capacity(), line.len() + 1, self.limits.event);
        self.joined.reserve_exact(more);
        self.joined.push_str(line);
    }

    /// Clears the fields for the next event.
    fn clear_event(&mut self) {
        self.name.clear();
        self.joined.clear();
        self.data = 0..0;
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
