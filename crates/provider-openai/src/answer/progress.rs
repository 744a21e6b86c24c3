//! The state of an answer after the events so far.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use advisor_core::{Delta, DeltaKind, Error, Usage};
use serde_json::Value;

use super::{END_MARKER, End};
use crate::convert::Converter;
use crate::failure::Failures;
use crate::profile::TextMode;
use crate::request::ToolNames;
use crate::wire::{EVENT, ErrorObject, Event, Half, Says, read, tidy};
use provider_http::error::malformed_json;
use provider_http::fast_path::{FastPath, Framing};
use provider_http::sse::{SseDecoder, SseEvent};

/// The most matching events decoded at once: enough to share their fixed cost, and few enough to buffer.
const MOST_AT_ONCE: usize = 32;

/// The state of an answer after the events so far.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) deltas: VecDeque<Delta>,
    pub(super) end: End,
    pub(super) events: u64,
    /// The error to report after the deltas.
    pub(super) failed: Option<Error>,
    pub(super) failures: Failures,
    pub(super) fast: FastPath,
    converter: Converter,
    choices: u32,
    /// The choices that have a finish reason.
    finished: BTreeSet<u32>,
    /// Whether a part of an answer arrived.
    answers: bool,
    /// The server's status message, while no answer has arrived.
    remark: Option<ErrorObject>,
    /// The first half of a character at whose middle the last text was cut.
    half: Option<Half>,
}

/// The meaning of a piece of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A part of an answer, or a whole one that was not streamed.
    Answer { whole: bool },
    /// A failure of the server.
    Failure,
    /// A message about an answer that continues or is still to come.
    Remark,
    /// Nothing known.
    Nothing,
}

impl Progress {
    pub(super) fn new(choices: u32, text: TextMode, failures: Failures) -> Self {
        let mut fast = FastPath::new(Framing::Sse, &EVENT);
        if text == TextMode::Cumulative {
            fast.stop_learning();
        }
        Self {
            deltas: VecDeque::with_capacity(MOST_AT_ONCE),
            end: End::Open,
            events: 0,
            failed: None,
            fast,
            converter: Converter::new(text, failures.redaction().clone()),
            failures,
            choices: choices.max(1),
            finished: BTreeSet::new(),
            answers: false,
            remark: None,
            half: None,
        }
    }

    /// Sets the tool names of the answered request.
    pub(super) fn set_tools(&mut self, names: Arc<ToolNames>) {
        self.converter.set_tools(names);
    }

    /// Reads an event of a stream whose first byte is at `from` in the body.
    pub(super) fn read_event(&mut self, event: SseEvent<'_>, from: u64) {
        let data = event.data.trim();
        if data.is_empty() {
            return;
        }
        // Nothing follows a last event without a blank line, so its token counts could not be kept.
        if !event.trailing && self.fast.decode_data(event.event, data, &mut self.deltas) {
            self.events += 1;
            self.half = None;
            return;
        }
        self.tell_usage();
        self.events += 1;
        if data.starts_with(END_MARKER) {
            return self.mark_done();
        }
        if let Err(error) = self.read_json(data, event.event) {
            // A truncated event at the end is ignored.
            if !event.trailing {
                self.fail_with(malformed_json(&error, from + event.position));
            }
        }
    }

    /// Decodes the next events if they match a known template. Returns false if none does.
    #[inline]
    pub(super) fn read_ahead(&mut self, decoder: &mut SseDecoder) -> bool {
        let longest = decoder.max_event_bytes();
        let Some(bytes) = decoder.peek() else { return false };
        let decoded = self.fast.decode(bytes, longest, MOST_AT_ONCE, &mut self.deltas);
        if decoded.events == 0 {
            return false;
        }
        decoder.consume(decoded.bytes, decoded.events);
        self.events += decoded.events;
        self.half = None;
        true
    }

    /// Emits the token counts of matched events, before anything else.
    pub(super) fn tell_usage(&mut self) {
        let mut all: Option<Usage> = None;
        for event in self.fast.take_counts() {
            let mut deltas = VecDeque::new();
            if let Ok(event) = serde_json::from_str::<Event<'_>>(&event) {
                self.converter.convert(event, &mut deltas);
            }
            for delta in deltas {
                if let DeltaKind::Usage(usage) = delta.kind {
                    all.get_or_insert_default().merge(&usage);
                }
            }
        }
        self.deltas.extend(all.map(Delta::usage));
    }

    /// Emits the data attached to reasoning, to which nothing is added any more. Returns false if there is none.
    pub(super) fn end_data(&mut self) -> bool {
        let before = self.deltas.len();
        self.fast.end_data(&mut self.deltas);
        self.deltas.len() > before
    }

    pub(super) fn mark_done(&mut self) {
        if self.end != End::Done {
            self.tell_usage();
            self.end_data();
            // Later events are read one by one, and nearly all of them are dropped.
            self.fast.stop_learning();
            self.end = End::Done;
            self.deltas.push_back(Delta::done());
        }
    }

    /// Reads one event, or a whole body. An event named `error` is an error, whatever its content.
    pub(super) fn read_json(&mut self, json: &str, name: Option<&str>) -> serde_json::Result<Meaning> {
        let named_error = name == Some("error");
        if json == "null" {
            return Ok(Meaning::Nothing);
        }
        if !json.starts_with('{') {
            return self.read_other(json, named_error);
        }
        match serde_json::from_str::<Event<'_>>(json) {
            Ok(event) => {
                let before = self.deltas.len();
                let meaning = self.read_object(json, event, named_error);
                if self.deltas.len() > before {
                    self.half = None;
                }
                if meaning == (Meaning::Answer { whole: false }) {
                    self.fast.parsed(name, json, &mut self.deltas, before);
                } else {
                    self.fast.join_parsed(&mut self.deltas, before);
                }
                Ok(meaning)
            }
            Err(error) => {
                let tidy = tidy(json, &mut self.half).ok_or(error)?;
                let event = serde_json::from_str(&tidy)?;
                let before = self.deltas.len();
                let meaning = self.read_object(&tidy, event, named_error);
                self.fast.join_parsed(&mut self.deltas, before);
                Ok(meaning)
            }
        }
    }

    fn read_object(&mut self, json: &str, event: Event<'_>, named_error: bool) -> Meaning {
        let is_answer = event.choices.is_some() || event.usage.is_some() || event.x_groq.is_some();
        if named_error || !is_answer {
            let said: Value = read(json).unwrap_or_default();
            if named_error {
                return self.fail(ErrorObject::find(&said).unwrap_or_else(|| ErrorObject::read(&said)));
            }
            if let Some(words) = ErrorObject::find(&said) {
                return self.read_words(words, said.as_object().map_or(Says::Words, Says::of));
            }
        }
        if is_answer {
            self.answers = true;
            self.remark = None;
        }
        let before = self.deltas.len();
        let told = self.converter.convert(event, &mut self.deltas);
        if self.converter.forgets() {
            self.fast.stop_learning();
        }
        self.note_finished(before);
        if self.end == End::Done {
            let late = self.deltas.split_off(before);
            self.deltas.extend(late.into_iter().filter(|delta| matches!(delta.kind, DeltaKind::Usage(_))));
        }
        match told.error {
            Some(error) => self.fail(error),
            None if is_answer => Meaning::Answer { whole: told.whole },
            None => Meaning::Nothing,
        }
    }

    fn read_words(&mut self, words: ErrorObject, says: Says) -> Meaning {
        match says {
            Says::Words | Says::GoesOn if self.answers => {}
            Says::GoesOn => self.remark = Some(words),
            Says::Failed | Says::Words => return self.fail(words),
        }
        Meaning::Remark
    }

    /// Searches the deltas from index `new` on for finish reasons.
    fn note_finished(&mut self, new: usize) {
        if self.end == End::Open {
            let finishes =
                self.deltas.range(new..).filter(|delta| matches!(delta.kind, DeltaKind::Finish(_)));
            self.finished.extend(finishes.map(|delta| delta.choice));
            if self.finished.len() >= self.choices as usize {
                self.end = End::Finished;
            }
        }
    }

    /// Reads JSON that is no object: a list of errors as Google sends it, or an error in plain words.
    fn read_other(&mut self, json: &str, named_error: bool) -> serde_json::Result<Meaning> {
        let said = match serde_json::from_str::<Value>(json) {
            Ok(said) => said,
            Err(_) if named_error => Value::String(json.to_owned()),
            Err(error) => read(json).ok_or(error)?,
        };
        match ErrorObject::find(&said).or_else(|| named_error.then(|| ErrorObject::read(&said))) {
            Some(error) => Ok(self.fail(error)),
            None => Ok(Meaning::Nothing),
        }
    }

    /// Ends the body. If no answer arrived, the server's status message becomes the error.
    pub(super) fn fail_unanswered(&mut self) {
        if let Some(remark) = self.remark.take().filter(|_| self.end == End::Open) {
            self.fail(remark);
        }
    }

    /// Keeps the first error, and drops the status message. Every error of an answer passes through here. After
    /// the end marker the answer is complete, and errors are ignored.
    pub(super) fn fail_with(&mut self, error: Error) {
        if self.end != End::Done {
            self.failed.get_or_insert(error);
        }
        self.remark = None;
    }

    fn fail(&mut self, error: ErrorObject) -> Meaning {
        self.fail_with(self.failures.in_answer(error));
        Meaning::Failure
    }
}
