//! The Messages API as a [`WireFormat`].

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use advisor_core::{AggregatorLimits, Delta, Text};
use provider_http::answer::{AnswerEvent, Meaning, WireFormat};
use provider_http::failure::Report;
use provider_http::fast_path::{Field, Framing};
use provider_http::json::repair::read;
use serde_json::Value;

use crate::convert::Converter;
use crate::wire::{EVENT, text};

/// One answer of the Messages API.
#[derive(Debug)]
pub(crate) struct Messages {
    converter: Converter,
    /// The maximum bytes of blocks that are kept until their end.
    most_kept: usize,
}

impl Messages {
    /// Creates the format of an answer with these limits. `format` is the format name of the server's data.
    pub(crate) fn new(format: Text, limits: AggregatorLimits) -> Self {
        Self { converter: Converter::new(format), most_kept: limits.answer_bytes }
    }

    fn read_event(
        &mut self,
        kind: &str,
        event: &Value,
        bytes: usize,
        deltas: &mut VecDeque<Delta>,
    ) -> Meaning {
        match kind {
            "content_block_delta" => self.converter.block_delta(event, bytes, deltas),
            "message_start" => self.converter.message_start(event, deltas),
            "content_block_start" => {
                self.converter.block_start(event, bytes, deltas);
                return Meaning::BlockStart;
            }
            "content_block_stop" => {
                self.converter.block_stop(event, deltas);
                // Later events may be about another block, also if they have the same number.
                return Meaning::BlockStart;
            }
            "message_delta" => self.converter.message_delta(event, deltas),
            "message_stop" => deltas.push_back(Delta::done()),
            "message" if event.get("content").is_some_and(Value::is_array) => {
                self.converter.whole_message(event, deltas);
                return Meaning::Whole;
            }
            "ping" => return Meaning::KeepAlive,
            "error" => {
                let report = Report::find(event).unwrap_or_else(|| Report::read(event));
                return Meaning::Failure(Box::new(report));
            }
            _ => return Meaning::from_json(event),
        }
        Meaning::Piece
    }
}

impl WireFormat for Messages {
    const FRAMING: Framing = Framing::Sse;
    const FIELDS: &'static Field = &EVENT;
    // Anthropic ends an answer with `message_stop`. Gateways send this marker in addition, or in its place.
    const END_MARKER: Option<&'static str> = Some("[DONE]");

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let is_error = event.name == Some("error");
        let json = match read(event.data) {
            Ok(json) => json,
            Err(_) if is_error => Value::String(event.data.to_owned()),
            Err(error) => return Err(error),
        };
        let named = || event.name.unwrap_or_default();
        let kind = if is_error { "error" } else { text(&json, "type").unwrap_or_else(named) };
        let meaning = self.read_event(kind, &json, event.data.len(), deltas);
        if self.converter.kept() > self.most_kept {
            return Ok(Meaning::TooLarge { limit: self.most_kept });
        }
        Ok(meaning)
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        self.converter.end(deltas);
    }
}
