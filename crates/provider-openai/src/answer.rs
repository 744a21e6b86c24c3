//! From the bytes of a response body to deltas, without I/O.
//!
//! The first byte after a byte-order mark and white space tells what a body is, whatever its content type says: `{` or `[` begins JSON, which is
//! an answer that was not streamed, an error, or a stream framed as lines of JSON; `<` begins a page that some proxy wrote;
//! everything else is an event stream.

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

/// The data with which an event stream says that the answer is over.
const END_MARKER: &str = "[DONE]";

/// How far an answer has come towards its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    /// It goes on.
    Open,
    /// Every choice has a finish reason. More calls and usage may follow.
    Finished,
    /// The end marker came. Only usage may follow.
    Done,
}

/// Turns the bytes of one response body into deltas.
///
/// Push bytes, take deltas until there are none, push again; say when the body has ended. After an error there is nothing more.
#[derive(Debug)]
pub(crate) struct AnswerDecoder {
    body: Body,
    progress: Progress,
    limits: SseLimits,
    /// What the response says its body is.
    content_type: ServerWords,
    /// The body has ended, and nothing was made of that yet.
    ended: bool,
}

#[derive(Debug)]
enum Body {
    /// Nothing so far but what may stand before it.
    Unknown(Beginning),
    Events {
        decoder: Box<SseDecoder>,
        /// Where the decoder's first byte is in the body.
        from: u64,
    },
    Whole(Whole),
    Over,
}

impl AnswerDecoder {
    /// A decoder for an answer of so many choices.
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

    /// The same decoder for a body of this content type, which it names in errors.
    pub(crate) fn with_content_type(mut self, content_type: &str) -> Self {
        self.content_type =
            content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().into();
        self
    }

    /// The same decoder for an answer to a request in which tools are called so.
    pub(crate) fn with_names(mut self, names: &Arc<ToolNames>) -> Self {
        self.progress.set_tools(Arc::clone(names));
        self
    }

    /// Takes the next bytes. Call it when [`next`](Self::next) has nothing.
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

    /// Says that the body has ended.
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

    /// The next delta, or why there is none; `None` if more bytes are needed or the body has ended.
    pub(crate) fn next(&mut self) -> Option<Result<Delta>> {
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

    /// Moves deltas that are there to `deltas`, which is empty.
    pub(crate) fn take_ready(&mut self, deltas: &mut VecDeque<Delta>) {
        let is_next = self.progress.deltas.is_empty() && self.progress.failed.is_none();
        if is_next && self.progress.fast.knows_any() {
            self.read_ahead();
        }
        mem::swap(deltas, &mut self.progress.deltas);
    }

    /// Takes in events that look like one before; false if none comes next.
    #[inline]
    fn read_ahead(&mut self) -> bool {
        match &mut self.body {
            Body::Events { decoder, .. } => self.progress.read_ahead(decoder),
            _ => false,
        }
    }

    /// How far the answer has come towards its end.
    pub(crate) fn end(&self) -> End {
        self.progress.end
    }

    /// Whether the body has begun, and as far as is known is none whose events come one by one.
    pub(crate) fn is_whole(&self) -> bool {
        match &self.body {
            Body::Unknown(beginning) => beginning.has_begun(),
            Body::Whole(_) => true,
            Body::Events { .. } | Body::Over => false,
        }
    }

    /// Makes the errors of this answer.
    pub(crate) fn failures(&self) -> &Failures {
        &self.progress.failures
    }

    /// How many events came; comments, blank lines and empty events are none.
    pub(crate) fn events(&self) -> u64 {
        self.progress.events
    }

    fn fail(&mut self, error: Error) {
        self.progress.tell_usage();
        self.body = Body::Over;
        self.progress.fail_with(error);
    }

    /// Takes in what comes next; false if there is nothing.
    fn read(&mut self) -> Result<bool> {
        if self.progress.fast.knows_any() && self.read_ahead() { Ok(true) } else { self.read_event() }
    }

    /// Takes in the next event; false if there is none.
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
                    // The end marker needs no blank line: what stands in place of one is ignored, too.
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

    /// The body has ended and there was nothing in it that could be read: if it was meant to be something else, that is why.
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
