//! Decodes the bytes of a response body to deltas, without I/O.
//!
//! The first byte after a byte-order mark and white space determines the kind of a body, whatever its content
//! type. `{` or `[` begins JSON: an answer that was not streamed, an error, or a stream framed as lines of
//! JSON. `<` begins a page that some proxy wrote. Anything else is an event stream.

mod beginning;
mod progress;
#[cfg(test)]
mod tests;
mod whole;

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use advisor_core::{Delta, Error, Result};
use bytes::Bytes;

use crate::failure::Failures;
use crate::profile::TextMode;
use crate::request::ToolNames;
use beginning::Beginning;
use progress::Progress;
use provider_http::error::from_sse;
use provider_http::redaction::ServerWords;
use provider_http::sse::{SseDecoder, SseLimits};
use whole::Whole;

/// The data that marks the end of the answer in an event stream.
const END_MARKER: &str = "[DONE]";

/// The progress of an answer towards its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    /// The answer continues.
    Open,
    /// Every choice has a finish reason. More calls and usage may follow.
    Finished,
    /// The end marker came. Only usage may follow.
    Done,
}

/// Turns the bytes of one response body into deltas.
///
/// Push bytes, take deltas until there are none, push again; call `finish` when the body has ended. Nothing
/// follows an error.
#[derive(Debug)]
pub(crate) struct AnswerDecoder {
    body: Body,
    progress: Progress,
    limits: SseLimits,
    /// The content type of the response.
    content_type: ServerWords,
    /// Whether the body has ended and that was not evaluated yet.
    ended: bool,
}

#[derive(Debug)]
enum Body {
    /// Nothing so far but a byte-order mark or white space.
    Unknown(Beginning),
    Events {
        decoder: Box<SseDecoder>,
        /// The position of the decoder's first byte in the body.
        from: u64,
    },
    Whole(Whole),
    Over,
}

impl AnswerDecoder {
    /// Creates a decoder for an answer with `choices` choices.
    pub(crate) fn new(choices: u32, text: TextMode, limits: SseLimits, failures: Failures) -> Self {
        let progress = Progress::new(choices, text, failures);
        Self {
            body: Body::Unknown(Beginning::default()),
            progress,
            limits,
            content_type: ServerWords::default(),
            ended: false,
        }
    }

    /// Sets the content type of the body, for errors.
    pub(crate) fn with_content_type(mut self, content_type: &str) -> Self {
        self.content_type =
            content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().into();
        self
    }

    /// Sets the tool names of the answered request.
    pub(crate) fn with_names(mut self, names: &Arc<ToolNames>) -> Self {
        self.progress.set_tools(Arc::clone(names));
        self
    }

    /// Appends the next bytes. Call it when [`next`](Self::next) returns `None`.
    pub(crate) fn push(&mut self, mut bytes: Bytes) {
        if let Body::Unknown(beginning) = &mut self.body {
            let Some((first, from)) = beginning.skip(&mut bytes) else {
                return;
            };
            self.body = match first {
                b'{' | b'[' | b'<' => Body::Whole(Whole::new(from, first == b'<')),
                _ => Body::Events { decoder: Box::new(SseDecoder::new(self.limits)), from },
            };
        }
        match &mut self.body {
            Body::Events { decoder, .. } => decoder.push(bytes),
            Body::Whole(whole) => {
                if let Err(error) = whole.push(&bytes, self.limits.event) {
                    self.fail(error);
                }
            }
            Body::Unknown(_) | Body::Over => {}
        }
    }

    /// Marks the body as ended.
    pub(crate) fn finish(&mut self) {
        self.progress.tell_usage();
        match &mut self.body {
            Body::Events { decoder, .. } => {
                if decoder.unfinished_data().starts_with(END_MARKER) {
                    self.progress.mark_done();
                }
                decoder.finish();
            }
            Body::Whole(_) => self.read_whole(),
            Body::Unknown(_) | Body::Over => {}
        }
        self.ended = true;
    }

    /// Returns the next delta or an error; `None` if more bytes are needed or the body has ended.
    pub(crate) fn next(&mut self) -> Option<Result<Delta>> {
        loop {
            if let Some(delta) = self.progress.deltas.pop_front() {
                return Some(Ok(delta));
            }
            if self.progress.failed.is_some() {
                if self.progress.end_data() {
                    continue;
                }
                self.body = Body::Over;
                return self.progress.failed.take().map(Err);
            }
            match self.read() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => self.fail(error),
            }
        }
    }

    /// Moves the deltas that are ready to `deltas`, which must be empty.
    pub(crate) fn take_ready(&mut self, deltas: &mut VecDeque<Delta>) {
        let is_next = self.progress.deltas.is_empty() && self.progress.failed.is_none();
        if is_next && self.progress.fast.knows_any() {
            self.read_ahead();
        }
        mem::swap(deltas, &mut self.progress.deltas);
    }

    /// Decodes events that match a known template. Returns false if the next event matches none.
    #[inline]
    fn read_ahead(&mut self) -> bool {
        match &mut self.body {
            Body::Events { decoder, .. } => self.progress.read_ahead(decoder),
            _ => false,
        }
    }

    /// Returns the progress of the answer towards its end.
    pub(crate) fn end(&self) -> End {
        self.progress.end
    }

    /// Checks whether the body has begun and is not known to be an event stream.
    pub(crate) fn is_whole(&self) -> bool {
        match &self.body {
            Body::Unknown(beginning) => beginning.has_begun(),
            Body::Whole(_) => true,
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
        self.progress.tell_usage();
        self.body = Body::Over;
        self.progress.fail_with(error);
    }

    /// Decodes further events. Returns false if none is complete.
    fn read(&mut self) -> Result<bool> {
        if self.progress.fast.knows_any() && self.read_ahead() { Ok(true) } else { self.read_event() }
    }

    /// Reads the next event. Returns false if none is complete.
    fn read_event(&mut self) -> Result<bool> {
        let mut silent = true;
        if let Body::Events { decoder, from } = &mut self.body {
            let from = *from;
            match decoder.next_event() {
                Ok(Some(event)) => {
                    self.progress.read_event(event, from);
                    return Ok(true);
                }
                Ok(None) => {}
                Err(error) => {
                    // The end marker needs no blank line. An invalid line in place of one is ignored, too.
                    if decoder.unfinished_data().starts_with(END_MARKER) {
                        self.progress.mark_done();
                    }
                    return Err(from_sse(&error, from));
                }
            }
            silent = decoder.events() == 0 && decoder.comments() == 0;
        }
        if !mem::take(&mut self.ended) {
            return Ok(false);
        }
        self.progress.end_data();
        self.progress.fail_unanswered();
        if silent {
            self.refuse_other_types()?;
        }
        Ok(self.progress.failed.is_some() || !self.progress.deltas.is_empty())
    }

    /// Fails if the body had nothing readable and another content type than an event stream's.
    fn refuse_other_types(&self) -> Result<()> {
        let is_other = !self.content_type.is_empty() && !self.content_type.are("text/event-stream");
        if self.progress.events == 0 && is_other {
            return Err(self.progress.failures.other_type(&self.content_type));
        }
        Ok(())
    }

    fn read_whole(&mut self) {
        if let Body::Whole(whole) = mem::replace(&mut self.body, Body::Over)
            && let Err(error) = whole.read(&mut self.progress)
        {
            self.fail(error);
        }
    }
}
