//! From the bytes of a response body to deltas, without I/O.
//!
//! The first byte that is no white space tells what a body is, whatever its content type says: `{` or `[` begins JSON, which is
//! an answer that was not streamed, an error, or a stream framed as lines of JSON; `<` begins a page that some proxy wrote;
//! everything else is an event stream.

mod progress;
#[cfg(test)]
mod tests;

use std::mem;

use advisor_core::{Delta, Error, ErrorKind, Result};
use bytes::{Bytes, BytesMut};
use serde_json::value::RawValue;

use crate::failure::Failures;
use crate::profile::TextMode;
use crate::sse::{SseDecoder, SseError, SseLimits};
use progress::{Meaning, Progress};

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
    content_type: String,
    /// The body has ended, and nothing was made of that yet.
    ended: bool,
}

#[derive(Debug)]
enum Body {
    /// Only white space so far: this many bytes of it.
    Unknown(u64),
    Events {
        decoder: Box<SseDecoder>,
        /// Where the decoder's first byte is in the body.
        from: u64,
    },
    /// JSON, or a page: nothing can be said before it has ended.
    Whole {
        bytes: BytesMut,
        is_page: bool,
    },
    Over,
}

impl AnswerDecoder {
    /// A decoder for an answer of so many choices.
    pub(crate) fn new(choices: u32, text: TextMode, limits: SseLimits, failures: Failures) -> Self {
        let progress = Progress::new(choices, text, failures);
        Self { body: Body::Unknown(0), progress, limits, content_type: String::new(), ended: false }
    }

    /// The same decoder for a body of this content type, which it names in errors.
    pub(crate) fn with_content_type(mut self, content_type: &str) -> Self {
        self.content_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        self
    }

    /// Takes the next bytes. Call it when [`next`](Self::next) has nothing.
    pub(crate) fn push(&mut self, mut bytes: Bytes) {
        if let Body::Unknown(skipped) = &mut self.body {
            let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            *skipped += blank as u64;
            let from = *skipped;
            match bytes.get(blank) {
                None => return,
                Some(first @ (b'{' | b'[' | b'<')) => {
                    self.body = Body::Whole { bytes: BytesMut::new(), is_page: *first == b'<' };
                }
                Some(_) => self.body = Body::Events { decoder: Box::new(SseDecoder::new(self.limits)), from },
            }
            drop(bytes.split_to(blank));
        }
        match &mut self.body {
            Body::Events { decoder, .. } => decoder.push(bytes),
            Body::Whole { bytes: whole, .. } => {
                let limit = self.limits.event;
                if whole.len() + bytes.len() > limit {
                    self.fail(Error::new(
                        ErrorKind::TooLarge,
                        format!("the answer's body is longer than {limit} bytes; raise `SseLimits::event` if that is expected"),
                    ));
                } else {
                    whole.extend_from_slice(&bytes);
                }
            }
            Body::Unknown(_) | Body::Over => {}
        }
    }

    /// Says that the body has ended.
    pub(crate) fn finish(&mut self) {
        match &mut self.body {
            Body::Events { decoder, .. } => decoder.finish(),
            Body::Whole { .. } => self.read_whole(),
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
            match self.read_event() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => self.fail(error),
            }
        }
    }

    /// How far the answer has come towards its end.
    pub(crate) fn end(&self) -> End {
        self.progress.end
    }

    /// How many events came; comments, blank lines and empty events are none.
    pub(crate) fn events(&self) -> u64 {
        self.progress.events
    }

    fn fail(&mut self, error: Error) {
        self.body = Body::Over;
        self.progress.failed.get_or_insert(error);
    }

    /// Takes in the next event; false if there is none.
    fn read_event(&mut self) -> Result<bool> {
        let Body::Events { decoder, from } = &mut self.body else {
            return if mem::take(&mut self.ended) { self.refuse_other_types() } else { Ok(false) };
        };
        let from = *from;
        if let Some(event) = decoder.next_event().map_err(|error| of_sse(&error, from))? {
            self.progress.read_event(event, from);
            return Ok(true);
        }
        let silent = decoder.events() == 0 && decoder.comments() == 0;
        if silent && mem::take(&mut self.ended) { self.refuse_other_types() } else { Ok(false) }
    }

    /// The body has ended and there was nothing in it that could be read: if it was meant to be something else, that is why.
    fn refuse_other_types(&self) -> Result<bool> {
        match self.content_type.as_str() {
            _ if self.progress.events > 0 => Ok(false),
            "" | "text/event-stream" => Ok(false),
            other => Err(self.progress.failures.protocol(
                None,
                format!(
                    "the provider answered with `{other}` and nothing that could be read; check the base URL"
                ),
                "",
            )),
        }
    }

    fn read_whole(&mut self) {
        let Body::Whole { bytes, is_page } = mem::replace(&mut self.body, Body::Over) else {
            return;
        };
        let read = match str::from_utf8(&bytes) {
            Ok(page) if is_page => Err(self.progress.failures.protocol(
                None,
                "the provider answered with a web page; check the base URL, and whether a proxy is in the way".to_owned(),
                page,
            )),
            Ok(json) => self.read_values(json),
            Err(error) => {
                Err(not_utf8(error.valid_up_to() as u64))
            }
        };
        if let Err(error) = read {
            self.fail(error);
        }
    }

    /// Reads an answer that was not streamed, or a stream framed as lines of JSON.
    fn read_values(&mut self, text: &str) -> Result<()> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        loop {
            let position = values.byte_offset() as u64;
            let value = match values.next() {
                None => return Ok(()),
                Some(Ok(value)) => value.get(),
                Some(Err(error)) if error.is_eof() => {
                    let message = "the answer's body ended in the middle of its JSON";
                    return Err(Error::new(ErrorKind::Truncated, message));
                }
                Some(Err(error)) => return Err(malformed(&error, position)),
            };
            self.progress.events += 1;
            match self.progress.read_json(value, false) {
                Ok(Meaning::Answer { whole: true }) => self.progress.mark_done(),
                Ok(Meaning::Answer { whole: false }) => {}
                Ok(Meaning::Nothing) => {
                    let message =
                        "the provider answered with JSON that is no chat completion; check the base URL";
                    return Err(self.progress.failures.protocol(Some(position), message.to_owned(), value));
                }
                Ok(Meaning::Failure) => return Ok(()),
                Err(error) => return Err(malformed(&error, position)),
            }
        }
    }
}

fn of_sse(error: &SseError, from: u64) -> Error {
    match error {
        SseError::InvalidUtf8 { position } => not_utf8(from + position),
        SseError::TooLarge { .. } => Error::new(ErrorKind::TooLarge, error.to_string()),
    }
}

fn not_utf8(position: u64) -> Error {
    let kind = ErrorKind::Protocol { position: Some(position) };
    Error::new(kind, format!("the answer is not valid UTF-8 at byte {position}"))
}

/// The parser's own words may quote the answer, so only the place is told.
fn malformed(error: &serde_json::Error, position: u64) -> Error {
    let kind = ErrorKind::Protocol { position: Some(position) };
    let (line, column) = (error.line(), error.column());
    let place = format!("line {line}, column {column} of the JSON that begins at byte {position}");
    Error::new(kind, format!("the provider sent malformed JSON: {place}"))
}
