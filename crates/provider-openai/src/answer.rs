//! Chat Completions as a [`WireFormat`].

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use advisor_core::{AggregatorLimits, Delta, Text, Usage};
use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
use provider_http::failure::Report;
use provider_http::json::{Json, read, value};
use serde_json::Value;

use crate::convert::Converter;
use crate::profile::ThinkTags;
use crate::wire::{Event, TokenCounts};

/// One answer in the wire format of Chat Completions.
#[derive(Debug)]
pub(crate) struct ChatCompletions {
    converter: Converter,
    /// The maximum bytes of audio that are kept.
    most_kept: usize,
}

impl ChatCompletions {
    /// Creates a reader of an answer. `format` is the format name of data that goes back to the server.
    pub(crate) fn new(tags: ThinkTags, format: Text) -> Self {
        let most_kept = AggregatorLimits::default().answer_bytes;
        Self { converter: Converter::new(tags, format), most_kept }
    }

    fn read_object(
        &mut self,
        event: AnswerEvent<'_>,
        object: &mut Event<'_>,
        deltas: &mut VecDeque<Delta>,
    ) -> Meaning {
        if is_error(event) || !object.is_answer {
            let meaning = meaning_of(event, &value(event.data).unwrap_or_default());
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
            None if !object.is_answer => Meaning::Unknown,
            None if converted.whole => Meaning::Whole,
            None => Meaning::Piece,
        }
    }
}

impl WireFormat for ChatCompletions {
    const FRAMING: Framing = Framing::Sse;
    const END_MARKER: Option<&'static str> = Some("[DONE]");
    // `p` is Mistral's padding, `token_id` is Together's.
    const IGNORED: &'static [&'static str] = &["obfuscation", "p", "token_id", "logprobs"];
    const USAGE: Option<&'static str> = Some("usage");

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        if !event.data.starts_with('{') {
            return read_other(event);
        }
        let mut object = Event::default();
        read(event.data, |json| object.read(json))?;
        Ok(self.read_object(event, &mut object, deltas))
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        self.converter.finish(deltas);
    }

    fn usage<'a>(&mut self, json: Json<'a>, usage: &mut Option<Usage>) -> Option<Json<'a>> {
        let mut counts = None::<TokenCounts>;
        let rest = json.object_in(&mut counts, TokenCounts::read)?;
        *usage = counts.and_then(|counts| counts.to_usage());
        Some(rest)
    }

    fn repeat(&mut self, spelling: &str) -> bool {
        self.converter.repeat(spelling)
    }
}

/// Checks whether an event is named `error`. Such an event is an error with any content.
fn is_error(event: AnswerEvent<'_>) -> bool {
    event.name == Some("error")
}

/// Reads JSON that is no object: a list of errors as Google sends it, or an error as plain text.
pub(crate) fn read_other(event: AnswerEvent<'_>) -> serde_json::Result<Meaning> {
    match value(event.data) {
        Ok(json) => Ok(meaning_of(event, &json)),
        Err(_) if is_error(event) => Ok(meaning_of(event, &Value::String(event.data.to_owned()))),
        Err(error) => Err(error),
    }
}

/// Returns the meaning of JSON that is no part of an answer.
fn meaning_of(event: AnswerEvent<'_>, json: &Value) -> Meaning {
    if is_error(event) {
        return Meaning::Failure(Box::new(Report::find(json).unwrap_or_else(|| Report::read(json))));
    }
    Meaning::from_json(json)
}
