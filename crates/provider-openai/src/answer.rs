//! Chat Completions as a [`WireFormat`].

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use advisor_core::{AggregatorLimits, Delta, Text};
use provider_http::answer::{AnswerEvent, Meaning, WireFormat};
use provider_http::failure::Report;
use provider_http::fast_path::{Field, Framing};
use serde_json::Value;

use crate::convert::{Converter, TextForm};
use crate::wire::{EVENT, Event, read, repair};

/// One answer in the wire format of Chat Completions.
#[derive(Debug)]
pub(crate) struct ChatCompletions {
    converter: Converter,
    /// The maximum bytes of audio and of cumulative text that are kept.
    most_kept: usize,
}

impl ChatCompletions {
    /// Creates a reader of an answer. `format` is the format name of data that goes back to the server.
    pub(crate) fn new(text: TextForm, format: Text) -> Self {
        let most_kept = AggregatorLimits::default().answer_bytes;
        Self { converter: Converter::new(text, format), most_kept }
    }

    /// Reads an object. `piece` is the meaning of a piece of an answer.
    fn read_object(
        &mut self,
        event: AnswerEvent<'_>,
        piece: Meaning,
        object: &mut Event<'_>,
        deltas: &mut VecDeque<Delta>,
    ) -> Meaning {
        let is_answer = object.choices.is_some() || object.usage.is_some() || object.x_groq.is_some();
        if is_error(event) || !is_answer {
            let json: Value = read(event.data).unwrap_or_default();
            let meaning = meaning_of(event, &json);
            if meaning != Meaning::Unknown {
                return meaning;
            }
        }
        let converted = self.converter.convert(object, deltas);
        if self.converter.kept() > self.most_kept {
            return Meaning::TooLarge { limit: self.most_kept };
        }
        match converted.error {
            Some(report) => Meaning::Failure(Box::new(report)),
            None if converted.mixes => {
                Meaning::Contradiction("the server mixes several answers to one request; make it give one")
            }
            None if is_answer && converted.whole => Meaning::Whole,
            None if is_answer && converted.altered => Meaning::Rewritten,
            None if is_answer => piece,
            None => Meaning::Unknown,
        }
    }

    /// Reads JSON that is no object: a list of errors as Google sends it, or an error as plain text.
    fn read_other(event: AnswerEvent<'_>) -> serde_json::Result<Meaning> {
        let json = match serde_json::from_str::<Value>(event.data) {
            Ok(json) => json,
            Err(_) if is_error(event) => Value::String(event.data.to_owned()),
            Err(error) => read(event.data).ok_or(error)?,
        };
        Ok(meaning_of(event, &json))
    }
}

impl WireFormat for ChatCompletions {
    const FRAMING: Framing = Framing::Sse;
    const FIELDS: &'static Field = &EVENT;
    const END_MARKER: Option<&'static str> = Some("[DONE]");

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        if event.data == "null" {
            return Ok(Meaning::Unknown);
        }
        if !event.data.starts_with('{') {
            return Self::read_other(event);
        }
        match serde_json::from_str(event.data) {
            Ok(mut object) => Ok(self.read_object(event, Meaning::Piece, &mut object, deltas)),
            Err(error) => {
                let repaired = repair(event.data).ok_or(error)?;
                let event = AnswerEvent::new(event.name, &repaired);
                Ok(self.read_object(event, Meaning::Rewritten, &mut serde_json::from_str(&repaired)?, deltas))
            }
        }
    }

    fn read_report(body: &str) -> Option<Report> {
        Report::find(&read(body)?)
    }

    fn is_repeatable(&self) -> bool {
        self.converter.is_repeatable()
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        self.converter.finish(deltas);
    }
}

/// Checks whether an event is named `error`. Such an event is an error with any content.
fn is_error(event: AnswerEvent<'_>) -> bool {
    event.name == Some("error")
}

/// Returns the meaning of JSON that is no part of an answer.
fn meaning_of(event: AnswerEvent<'_>, json: &Value) -> Meaning {
    if is_error(event) {
        return Meaning::Failure(Box::new(Report::find(json).unwrap_or_else(|| Report::read(json))));
    }
    Meaning::from_json(json)
}
