//! `generateContent` and `streamGenerateContent` as a [`WireFormat`].

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use advisor_core::{Delta, Text};
use provider_http::answer::{AnswerEvent, Meaning, WireFormat};
use provider_http::fast_path::{Field, Framing};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::convert::{Converted, Converter};
use crate::wire::{EVENT, Object, value};

/// The fields of an event that is a part of an answer.
const PARTS_OF_ANSWERS: [&str; 3] = ["candidates", "promptFeedback", "usageMetadata"];

/// One answer in the wire format of Gemini, streamed or whole.
#[derive(Debug)]
pub(crate) struct GenerateContent {
    converter: Converter,
}

impl GenerateContent {
    /// Creates the format of an answer. `format` is the format name of the server's data.
    pub(crate) fn new(format: Text) -> Self {
        Self { converter: Converter::new(format) }
    }
}

impl WireFormat for GenerateContent {
    const FRAMING: Framing = Framing::Sse;
    const FIELDS: &'static Field = &EVENT;
    // Google sends none; some gateways do.
    const END_MARKER: Option<&'static str> = Some("[DONE]");

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let json: &RawValue = serde_json::from_str(event.data)?;
        let object = Object::read(json).unwrap_or_default();
        let is_answer = PARTS_OF_ANSWERS.iter().any(|field| object.field(field).is_some());
        if !is_answer || object.field("error").is_some() {
            let meaning = Meaning::from_json(&value(json).unwrap_or(Value::Null));
            if meaning != Meaning::Unknown || !is_answer {
                return Ok(meaning);
            }
        }
        let Converted { failure, changes_calls } = self.converter.convert(&object, deltas);
        Ok(match failure {
            Some(report) => Meaning::Failure(Box::new(report)),
            None if changes_calls => Meaning::BlockStart,
            None => Meaning::Piece,
        })
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        self.converter.finish(deltas);
    }
}
