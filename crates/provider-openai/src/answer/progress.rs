//! What the events of an answer have told so far.

use std::collections::{BTreeSet, VecDeque};

use advisor_core::{Delta, DeltaKind, Error};
use serde_json::Value;

use super::{End, malformed};
use crate::convert::Converter;
use crate::failure::Failures;
use crate::profile::TextMode;
use crate::sse::SseEvent;
use crate::wire::{ErrorObject, Event, Half, read, tidy};

/// What the events of an answer have told so far.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) deltas: VecDeque<Delta>,
    pub(super) end: End,
    pub(super) events: u64,
    /// Comes after the deltas.
    pub(super) failed: Option<Error>,
    pub(super) failures: Failures,
    converter: Converter,
    choices: u32,
    /// The choices that have a finish reason.
    finished: BTreeSet<u32>,
    /// A part of an answer came.
    answers: bool,
    /// A character that the last text was cut in.
    half: Half,
}

/// What a piece of JSON was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A part of an answer, or a whole one that was not streamed.
    Answer { whole: bool },
    /// That the server failed.
    Failure,
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
            failures,
            converter: Converter::new(text),
            choices: choices.max(1),
            finished: BTreeSet::new(),
            answers: false,
            half: None,
        }
    }

    /// Takes in an event of a stream whose first byte is at `from` in the body.
    pub(super) fn read_event(&mut self, event: SseEvent<'_>, from: u64) {
        let data = event.data.trim();
        if data.is_empty() {
            return;
        }
        self.events += 1;
        if data.starts_with("[DONE]") {
            return self.mark_done();
        }
        if let Err(error) = self.read_json(data, event.event == Some("error")) {
            // A cut event at the end is as good as none, and nothing after the end marker matters.
            if !event.trailing && self.end != End::Done {
                self.failed = Some(malformed(&error, from + event.position));
            }
        }
    }

    pub(super) fn mark_done(&mut self) {
        if self.end != End::Done {
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
        match serde_json::from_str(json) {
            Ok(event) => Ok(self.read_object(json, event, named_error)),
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
            let found =
                ErrorObject::find(&said).filter(|_| !self.answers || ErrorObject::says_failure(&said));
            if let Some(error) = found.or_else(|| named_error.then(|| ErrorObject::read(&said))) {
                return self.fail(error);
            }
        }
        self.answers |= is_answer;
        let told = self.converter.convert(event, &mut self.deltas);
        self.note_finished();
        match told.error {
            Some(error) => self.fail(error),
            None if is_answer => Meaning::Answer { whole: told.whole },
            None => Meaning::Nothing,
        }
    }

    fn note_finished(&mut self) {
        if self.end == End::Open {
            let finishes = self.deltas.iter().filter(|delta| matches!(delta.kind, DeltaKind::Finish(_)));
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

    fn fail(&mut self, error: ErrorObject) -> Meaning {
        if self.end != End::Done {
            self.failed = Some(self.failures.in_answer(error));
        }
        Meaning::Failure
    }
}
