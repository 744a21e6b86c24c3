//! Server-sent events, decoded from bytes.
//!
//! [`SseDecoder`] does no I/O: the caller pushes the bytes of a response body as they arrive and takes events out.
//! It follows the [WHATWG rules for interpreting an event stream][rules]. They cover the byte-order mark, LF, CRLF
//! and CR line ends, comments, several `data` lines, `event`, `id`, `retry` and unknown fields. The events do not
//! depend on how the bytes were split.
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
use std::time::Duration;

use bytes::Bytes;

mod block;
mod limits;
mod lines;
mod peek;
#[cfg(test)]
mod tests;

use block::{Block, DataTooLarge};
pub use limits::{SseError, SseLimits};
use lines::{Line, Lines};

/// One event, borrowed from the decoder until the next call.
///
/// An event of one `data` line within one push is a slice of those bytes. An event that was split over pushes, or
/// that has several `data` lines, is copied into a buffer that is reused. Only an event with an `id` line needs an
/// allocation.
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
/// Every byte is searched once, for pieces of any size. After an error every further call returns the
/// same error.
///
/// ```
/// use provider_http::sse::{SseDecoder, SseError, SseLimits};
///
/// # fn main() -> Result<(), SseError> {
/// let mut decoder = SseDecoder::new(SseLimits::default());
/// let mut texts = Vec::new();
/// for piece in ["data: Hel", "lo\n\n: still there\n", "data: [DONE]"] {
///     decoder.push(piece.into());
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
pub struct SseDecoder {
    lines: Lines,
    block: Block,
    event_limit: usize,
    /// Position of the first `data` line of `block`.
    block_position: u64,
    /// Whether the event in `block` was returned: the next call starts a new one.
    delivered: bool,
    ended: bool,
    failed: Option<SseError>,
    events: u64,
    comments: u64,
}

/// Location of the data of a complete event.
enum Found {
    /// In one line, whose value is not validated yet.
    Line { line: Line, value: Line },
    /// In the block.
    Block,
    /// In the block, which has no blank line.
    Trailing,
}

impl SseDecoder {
    /// Creates a decoder at the start of a stream.
    #[must_use]
    pub fn new(limits: SseLimits) -> Self {
        Self {
            lines: Lines::new(limits.line),
            block: Block::default(),
            event_limit: limits.event,
            block_position: 0,
            delivered: false,
            ended: false,
            failed: None,
            events: 0,
            comments: 0,
        }
    }

    /// Adds the next bytes of the body.
    ///
    /// Call it when [`next_event`](Self::next_event) has returned `None`. Otherwise the remaining bytes are kept,
    /// at the cost of a copy and without a limit. Bytes after [`finish`](Self::finish) or after an error are
    /// ignored.
    pub fn push(&mut self, bytes: Bytes) {
        if !self.ended && self.failed.is_none() {
            self.lines.push(bytes);
        }
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
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseError> {
        if self.delivered {
            self.delivered = false;
            self.block.clear();
        }
        let found = match self.find() {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.fail(error)),
        };
        let (data, position) = match found {
            Found::Block | Found::Trailing => (self.block.data(), self.block_position),
            Found::Line { line, value } => match self.lines.text(value) {
                Ok(data) => {
                    self.block.complete();
                    (data, self.lines.position(line))
                }
                Err(error) => {
                    self.failed = Some(error.clone());
                    return Err(error);
                }
            },
        };
        self.delivered = true;
        self.events += 1;
        let trailing = matches!(found, Found::Trailing);
        Ok(Some(SseEvent { event: self.block.name(), data, trailing, position }))
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

    /// Returns the id of the last completed block with a valid `id` line.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        self.block.last_id()
    }

    /// Returns the reconnection time of the last valid `retry` line.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.block.retry()
    }

    #[inline]
    fn find(&mut self) -> Result<Option<Found>, SseError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        while let Some(line) = self.lines.next_line()? {
            // Nearly every event of a language model is one `data` line and a blank one: its data need not be
            // copied.
            if let Some(value) = self.whole_event(line) {
                return Ok(Some(Found::Line { line, value }));
            }
            if self.add(line)? || line.ends_block && self.end_block() {
                return Ok(Some(Found::Block));
            }
        }
        if self.ended { self.find_trailing() } else { Ok(None) }
    }

    /// Adds one line. Returns whether it was a blank one that completed an event.
    fn add(&mut self, line: Line) -> Result<bool, SseError> {
        let text = self.lines.text(line)?;
        if text.is_empty() {
            return Ok(self.end_block());
        }
        if text.starts_with(':') {
            self.comments += 1;
        } else {
            let (position, had_data) = (self.lines.position(line), self.block.has_data());
            let too_large =
                |DataTooLarge| SseError::TooLarge { part: "event", limit: self.event_limit, position };
            self.block.add(text, self.event_limit).map_err(too_large)?;
            if !had_data && self.block.has_data() {
                self.block_position = position;
            }
        }
        Ok(false)
    }

    /// Handles a blank line. Returns whether it completed an event.
    fn end_block(&mut self) -> bool {
        self.block.complete();
        let event = self.block.has_data();
        if !event {
            self.block.clear();
        }
        event
    }

    /// Returns the value of a `data` line that is the whole data of an event within the limit.
    #[inline]
    fn whole_event(&self, line: Line) -> Option<Line> {
        let value = match self.lines.bytes(line) {
            [b'd', b'a', b't', b'a', b':', b' ', ..] => line.after(6),
            [b'd', b'a', b't', b'a', b':', ..] => line.after(5),
            _ => return None,
        };
        (line.ends_block && !self.block.has_data() && value.len() <= self.event_limit).then_some(value)
    }

    /// Returns the event that the end of the body left without a blank line.
    fn find_trailing(&mut self) -> Result<Option<Found>, SseError> {
        if let Some(line) = self.lines.take_unfinished() {
            let cut_in_character =
                str::from_utf8(self.lines.bytes(line)).is_err_and(|error| error.error_len().is_none());
            if cut_in_character {
                self.block.clear();
            } else {
                self.add(line)?;
            }
        }
        Ok(self.block.has_data().then_some(Found::Trailing))
    }

    #[cold]
    fn fail(&mut self, error: SseError) -> SseError {
        self.failed.insert(error).clone()
    }
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

impl Default for SseDecoder {
    fn default() -> Self {
        Self::new(SseLimits::default())
    }
}
