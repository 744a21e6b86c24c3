//! Decodes the bytes of a response body to deltas, without I/O.
//!
//! A provider implements [`WireFormat`], and [`AnswerDecoder`] does the rest. The first bytes after a byte-order
//! mark and white space determine the kind of a body. The content type does not.
//! `{` or `[` begins JSON: an answer that was not streamed, an error, or a stream of lines.
//! A field such as `data:` or a comment begins server-sent events. `<` begins a web page, such as the error of a proxy.
//! Anything else has the framing of the format.

mod body;
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
use bytes::Bytes;

use crate::failure::Failures;
use crate::names::WireNames;
use crate::redaction::{Redaction, ServerWords};
use crate::sse::{SseDecoder, SseLimits};

use body::Body;
use progress::{Progress, is_end_marker};
pub use wire_format::{AnswerEvent, End, Framing, Meaning, WireFormat};

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
