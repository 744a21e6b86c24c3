//! What the events of an answer have told so far.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use advisor_core::{Delta, DeltaKind, Error, Text};
use serde_json::Value;

use super::{END_MARKER, End};
use crate::convert::Converter;
use crate::failure::Failures;
use crate::profile::TextMode;
use crate::request::ToolNames;
use crate::shapes::Shapes;
use crate::wire::{ErrorObject, Event, Half, Says, TokenCounts, read, tidy};
use provider_http::error::malformed_json;
use provider_http::sse::SseEvent;

/// What the events of an answer have told so far.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) deltas: VecDeque<Delta>,
    pub(super) end: End,
    pub(super) events: u64,
    /// Comes after the deltas.
    pub(super) failed: Option<Error>,
    pub(super) failures: Failures,
    pub(super) shapes: Shapes,
    converter: Converter,
    choices: u32,
    /// The choices that have a finish reason.
    finished: BTreeSet<u32>,
    /// A part of an answer came.
    answers: bool,
    /// How the server said that it goes on, as long as no answer came.
    remark: Option<ErrorObject>,
    /// A character that the last text was cut in.
    half: Option<Half>,
}

/// What a piece of JSON was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A part of an answer, or a whole one that was not streamed.
    Answer { whole: bool },
    /// That the server failed.
    Failure,
    /// Words about an answer that goes on, or is to come.
    Remark,
    /// Nothing that is known here.
    Nothing,
}

impl Progress {
    pub(super) fn new(choices: u32, text: TextMode, failures: Failures) -> Self {
        Self {
            deltas: VecDeque::new(),
            end: End::Open,
            events: 0,
            failed: None,
            shapes: if text == TextMode::Cumulative { Shapes::none() } else { Shapes::new() },
            converter: Converter::new(text, failures.redaction().clone()),
            failures,
            choices: choices.max(1),
            finished: BTreeSet::new(),
            answers: false,
            remark: None,
            half: None,
        }
    }

    /// Takes what tools are called in the request that is answered.
    pub(super) fn set_tools(&mut self, names: Arc<ToolNames>) {
        self.converter.set_tools(names);
    }

    /// Takes in an event of a stream whose first byte is at `from` in the body.
    pub(super) fn read_event(&mut self, event: SseEvent<'_>, from: u64) {
        let data = event.data.trim();
        if data.is_empty() {
            return;
        }
        // Nothing comes behind a last event that has no blank line, so its token counts could not be kept.
        if event.event.is_none()
            && !event.trailing
            && let Some((text, b"")) = self.shapes.read(data.as_bytes())
        {
            let delta = self.take_alike(text);
            return self.deltas.extend(delta);
        }
        self.tell_usage();
        self.events += 1;
        if data.starts_with(END_MARKER) {
            return self.mark_done();
        }
        if let Err(error) = self.read_json(data, event.event == Some("error")) {
            // A cut event at the end is as good as none.
            if !event.trailing {
                self.fail_with(malformed_json(&error, from + event.position));
            }
        }
    }

    /// Takes in the event that begins these bytes if it looks like one before, and gives what follows it.
    #[inline(always)]
    pub(super) fn read_alike<'a>(&mut self, bytes: &'a [u8], longest: usize) -> Option<(Delta, &'a [u8])> {
        let (text, rest) = self.shapes.read(bytes.strip_prefix(b"data: ")?)?;
        let rest = rest.strip_prefix(b"\n\n")?;
        if bytes.len() - rest.len() > longest {
            return None;
        }
        Some((self.take_alike(text)?, rest))
    }

    /// Takes in an event that looks like one before and says this.
    #[inline(always)]
    pub(super) fn take_alike(&mut self, text: Text) -> Option<Delta> {
        self.events += 1;
        if self.half.is_some() {
            self.half = None;
        }
        self.shapes.take(text)
    }

    /// Tells the token counts of events that looked alike, before anything else comes.
    pub(super) fn tell_usage(&mut self) {
        self.deltas.extend(self.shapes.take_usage().map(Delta::usage));
    }

    /// Learns from an event which has said what comes from number `new` on.
    fn learn(&mut self, json: &str, new: usize, counts: Option<TokenCounts>) {
        let usage = counts.and_then(TokenCounts::to_usage).map(Delta::usage);
        let mut said = self.deltas.range(new..);
        if let Some(delta) = said.next()
            && said.eq(&usage)
        {
            self.shapes.learn(json, delta, counts);
        }
    }

    pub(super) fn mark_done(&mut self) {
        if self.end != End::Done {
            self.tell_usage();
            // What comes now is read one by one, and nearly all of it is dropped.
            self.shapes = Shapes::none();
            self.end = End::Done;
            self.deltas.push_back(Delta::done());
        }
    }

    /// Takes in one event, or a whole body. `named_error`: the event's name says that it is an error, whatever it holds.
    pub(super) fn read_json(&mut self, json: &str, named_error: bool) -> serde_json::Result<Meaning> {
        if json == "null" {
            return Ok(Meaning::Nothing);
        }
        if !json.starts_with('{') {
            return self.read_other(json, named_error);
        }
        match serde_json::from_str::<Event<'_>>(json) {
            Ok(event) => {
                let before = self.deltas.len();
                let counts = event.usage.as_deref().copied();
                let meaning = self.read_object(json, event, named_error);
                if self.deltas.len() > before {
                    self.half = None;
                }
                if meaning == (Meaning::Answer { whole: false }) {
                    self.learn(json, before, counts);
                }
                Ok(meaning)
            }
            Err(error) => {
                let tidy = tidy(json, &mut self.half).ok_or(error)?;
                let event = serde_json::from_str(&tidy)?;
                Ok(self.read_object(&tidy, event, named_error))
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
            self.shapes = Shapes::none();
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

    /// Looks for finish reasons among the deltas from number `new` on.
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

    /// What is no object: a list of errors as Google sends it, or an error in plain words.
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

    /// The body has ended. Where no answer came, what the server said instead is why.
    pub(super) fn fail_unanswered(&mut self) {
        if let Some(remark) = self.remark.take().filter(|_| self.end == End::Open) {
            self.fail(remark);
        }
    }

    /// The first error counts, and no remark any more. Every error of an answer comes this way: after the end marker the answer
    /// is complete, and none counts.
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
