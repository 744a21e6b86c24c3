//! Decodes the bytes of a response body to deltas, without I/O.
//!
//! A provider implements [`WireFormat`], and [`AnswerDecoder`] does the rest. The first bytes after a byte-order
//! mark and white space determine the kind of a body. The content type does not.
//! `{` or `[` begins JSON: an answer that was not streamed, an error, or a stream of lines.
//! A field such as `data:` or a comment begins server-sent events. `<` begins a web page, such as the error of a proxy.
//! Anything else has the framing of the format.

mod progress;
mod repeat;
mod status_event;
#[cfg(test)]
pub(crate) mod tests;
mod values;
mod wire_format;

use std::fmt;
use std::mem;
use std::sync::Arc;

use advisor_core::{Delta, Error, ErrorKind, Result};
use bytes::{Buf, Bytes};

use crate::failure::Failures;
use crate::names::WireNames;
use crate::redaction::{Redaction, ServerWords};
use crate::sse::{SseDecoder, SseLimits};

use progress::{Progress, is_end_marker};
use values::Values;
pub use wire_format::{AnswerEvent, End, Framing, Meaning, WireFormat};

/// The most bytes kept of a web page, for the error.
const LONGEST_PAGE: usize = 64 << 10;
const BYTE_ORDER_MARK: [u8; 3] = *b"\xEF\xBB\xBF";
/// The beginnings of a stream of server-sent events. No JSON begins so. A word that only looks similar, such as `error`,
/// is the text of a server.
const EVENT_BEGINNINGS: [&[u8]; 5] = [b":", b"data:", b"event:", b"id:", b"retry:"];

/// Turns the bytes of one response body into deltas.
///
/// Push bytes, take deltas until there are none, push again; call [`finish`](Self::finish) when the body has
/// ended. Nothing follows an error.
pub struct AnswerDecoder<W> {
    body: Body,
    progress: Progress<W>,
    limits: SseLimits,
    /// The content type of the response.
    content_type: ServerWords,
    /// Whether the body has ended, and its end was not processed yet.
    ended: bool,
}

impl<W: WireFormat> AnswerDecoder<W> {
    /// Creates a decoder of an answer. `redaction` applies to the server's words
    /// in errors, and to names and ids. [`SseLimits::event`] also bounds a JSON value.
    pub fn new(format: W, limits: SseLimits, redaction: Redaction) -> Self {
        Self {
            body: Body::default(),
            progress: Progress::new(format, Failures::new(redaction)),
            limits,
            content_type: ServerWords::default(),
            ended: false,
        }
    }

    /// Sets the tool names of the request. A call of an offered tool gets the tool's name, which is not redacted.
    #[must_use]
    pub(crate) fn with_tools(mut self, tools: Arc<WireNames>) -> Self {
        self.progress.tools = Some(tools);
        self
    }

    /// Sets the most bytes of the answer that the format may keep.
    #[must_use]
    pub(crate) fn with_most_kept(mut self, bytes: usize) -> Self {
        self.progress.most_kept = bytes;
        self
    }

    /// Sets the content type of the body, for errors.
    #[must_use]
    pub(crate) fn with_content_type(mut self, content_type: &str) -> Self {
        self.content_type =
            content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().into();
        self
    }

    /// Appends the next bytes. Call it when [`next`](Self::next) returns `None`.
    pub fn push(&mut self, bytes: Bytes) {
        self.body.push(bytes, W::FRAMING, self.limits);
    }

    /// Marks the body as ended.
    pub fn finish(&mut self) {
        self.body.end(self.limits);
        match &mut self.body {
            Body::Events { decoder, .. } => {
                if ends_answer::<W>(decoder) {
                    self.progress.mark_done();
                }
                decoder.finish();
            }
            Body::Json { values, .. } => values.finish(),
            Body::Page(page) => {
                let page = String::from_utf8_lossy(page).trim_end().to_owned();
                self.fail(self.progress.failures.web_page(&page.into()));
            }
            Body::Unknown(_) | Body::Over => {}
        }
        self.ended = !matches!(self.body, Body::Over);
    }

    /// Returns the next delta or an error; `None` if more bytes are needed or the body has ended.
    #[allow(clippy::should_implement_trait, reason = "it is not fused: more bytes may be pushed")]
    pub fn next(&mut self) -> Option<Result<Delta>> {
        loop {
            if let Some(delta) = self.progress.deltas.pop_front() {
                return Some(Ok(delta));
            }
            if let Some(error) = self.progress.failed.take() {
                self.body = Body::Over;
                return Some(Err(error));
            }
            match self.read() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => self.fail(error),
            }
        }
    }

    /// Returns the progress of the answer towards its end.
    #[must_use]
    pub fn end(&self) -> End {
        self.progress.end
    }

    /// Checks whether the body has begun and is not known to be a stream.
    #[must_use]
    pub(crate) fn is_whole(&self) -> bool {
        match &self.body {
            Body::Unknown(beginning) => beginning.has_begun(),
            // Lines of JSON are a stream, whatever the format expects.
            Body::Json { .. } => W::FRAMING == Framing::Sse && !self.progress.has_answer,
            Body::Page(_) => true,
            Body::Events { .. } | Body::Over => false,
        }
    }

    /// Returns the factory of this answer's errors.
    pub(crate) fn failures(&self) -> &Failures {
        &self.progress.failures
    }

    /// Returns the number of events. Comments, blank lines and empty events do not count.
    pub(crate) fn events(&self) -> u64 {
        self.progress.events
    }

    fn fail(&mut self, error: Error) {
        self.body = Body::Over;
        self.ended = false;
        self.progress.fail_with(error);
    }

    /// Reads the next event. Returns false if none is complete.
    fn read(&mut self) -> Result<bool> {
        match &mut self.body {
            Body::Events { decoder, from } => {
                let from = *from;
                match decoder.next_event() {
                    Ok(Some(event)) => {
                        self.progress.read_sse(event, from);
                        return Ok(true);
                    }
                    Ok(None) => {}
                    Err(error) => {
                        // The end marker needs no blank line. An invalid line in place of one is ignored, too.
                        if ends_answer::<W>(decoder) {
                            self.progress.mark_done();
                        }
                        return Err(crate::error::from_sse(&error, from));
                    }
                }
            }
            Body::Json { values, from } => match values.next_value(*from) {
                Ok(Some(value)) => {
                    self.progress.read_value(value.json, *from + value.position)?;
                    return Ok(true);
                }
                Ok(None) => {}
                // The answer is complete, so a value that the end of the body cuts is ignored.
                Err(error) if error.kind() == ErrorKind::Truncated && self.progress.end != End::Open => {}
                Err(error) => return Err(error),
            },
            Body::Unknown(_) | Body::Page(_) | Body::Over => {}
        }
        if mem::take(&mut self.ended) { self.end_body() } else { Ok(false) }
    }

    /// Handles the end of the body. Returns whether it brought something.
    fn end_body(&mut self) -> Result<bool> {
        self.progress.finish_format();
        self.progress.fail_unanswered();
        let is_silent = match &self.body {
            Body::Events { decoder, .. } => decoder.events() == 0 && decoder.comments() == 0,
            _ => W::FRAMING == Framing::Sse,
        };
        let is_other = !self.content_type.is_empty() && !self.content_type.are("text/event-stream");
        if is_silent && is_other && self.progress.events == 0 {
            return Err(self.progress.failures.other_type(&self.content_type));
        }
        Ok(self.progress.failed.is_some() || !self.progress.deltas.is_empty())
    }
}

/// Shows the progress of the answer, not its content.
impl<W> fmt::Debug for AnswerDecoder<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerDecoder")
            .field("end", &self.progress.end)
            .field("events", &self.progress.events)
            .finish_non_exhaustive()
    }
}

/// Checks whether the unfinished event at the end of a stream is the end marker.
fn ends_answer<W: WireFormat>(decoder: &SseDecoder) -> bool {
    is_end_marker::<W>(decoder.unfinished_data())
}

/// A body by its kind.
enum Body {
    /// Nothing so far that decides the kind.
    Unknown(Beginning),
    /// Server-sent events.
    Events {
        decoder: Box<SseDecoder>,
        /// The position of the decoder's first byte in the body.
        from: u64,
    },
    /// JSON values.
    Json {
        values: Box<Values>,
        /// The position of the first value's first byte in the body.
        from: u64,
    },
    /// A web page. It is read only for the error.
    Page(Vec<u8>),
    Over,
}

impl Default for Body {
    fn default() -> Self {
        Self::Unknown(Beginning::default())
    }
}

impl Body {
    /// Appends bytes. The first bytes that count determine the kind of the body.
    fn push(&mut self, mut bytes: Bytes, framing: Framing, limits: SseLimits) {
        if let Self::Unknown(beginning) = self {
            let Some((body, from)) = beginning.push(bytes) else { return };
            let Some(known) = Self::new(&body, from, framing, limits) else {
                beginning.held = body;
                return;
            };
            *self = known;
            bytes = body;
        }
        self.append(&bytes, limits);
    }

    /// Ends the bytes. If they do not decide the kind of the body, they are no server-sent events.
    fn end(&mut self, limits: SseLimits) {
        if let Self::Unknown(beginning) = self
            && let Some((body, from)) = beginning.push(Bytes::new())
        {
            *self = Self::Json { values: Box::new(Values::new(limits.event)), from };
            self.append(&body, limits);
        }
    }

    fn append(&mut self, bytes: &[u8], limits: SseLimits) {
        match self {
            Self::Events { decoder, .. } => decoder.push(bytes),
            Self::Json { values, .. } => values.push(bytes),
            Self::Page(page) => {
                let room = LONGEST_PAGE.min(limits.event).saturating_sub(page.len());
                page.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            }
            Self::Unknown(_) | Self::Over => {}
        }
    }

    /// Returns the kind of a body that begins with these bytes at `from`; `None` if they do not decide it.
    fn new(bytes: &[u8], from: u64, framing: Framing, limits: SseLimits) -> Option<Self> {
        let begins_event = EVENT_BEGINNINGS.iter().any(|beginning| bytes.starts_with(beginning));
        let may_begin_event = EVENT_BEGINNINGS.iter().any(|beginning| beginning.starts_with(bytes));
        Some(match (framing, bytes.first()?) {
            (_, b'<') => Self::Page(Vec::new()),
            (Framing::Lines, _) if !begins_event && may_begin_event => return None,
            (Framing::Sse, b'{' | b'[') => Self::Json { values: Box::new(Values::new(limits.event)), from },
            (Framing::Lines, _) if !begins_event => {
                Self::Json { values: Box::new(Values::new(limits.event)), from }
            }
            _ => Self::Events { decoder: Box::new(SseDecoder::new(limits)), from },
        })
    }
}

/// The bytes before the kind of a body is known: a byte-order mark, white space, and first bytes that do not decide.
#[derive(Debug, Default)]
struct Beginning {
    /// The number of bytes skipped before the body's first byte.
    skipped: u64,
    /// The first bytes of the body, which do not decide its kind, or of a byte-order mark.
    held: Bytes,
}

impl Beginning {
    /// Checks whether any byte arrived.
    fn has_begun(&self) -> bool {
        self.skipped > 0 || !self.held.is_empty()
    }

    /// Appends bytes. Returns the body so far and its position; `None` if its first byte has not arrived.
    fn push(&mut self, bytes: Bytes) -> Option<(Bytes, u64)> {
        let mut bytes =
            if self.held.is_empty() { bytes } else { [mem::take(&mut self.held), bytes].concat().into() };
        // The mark counts only at the very beginning.
        if self.skipped == 0 && BYTE_ORDER_MARK.starts_with(&bytes) && bytes.len() < BYTE_ORDER_MARK.len() {
            self.held = bytes;
            return None;
        }
        let mark =
            if self.skipped == 0 && bytes.starts_with(&BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        bytes.advance(mark);
        let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        bytes.advance(blank);
        self.skipped += (mark + blank) as u64;
        (!bytes.is_empty()).then_some((bytes, self.skipped))
    }
}
