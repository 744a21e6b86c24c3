//! The Responses API as a [`WireFormat`].

use std::collections::VecDeque;

use advisor_core::{Delta, Text};
use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
use provider_http::failure::Report;
use provider_http::json::{read, value};
use serde_json::Value;

use super::convert::Converter;
use super::wire::{Event, Response};
use crate::answer::read_other;

/// One answer in the wire format of the Responses API.
#[derive(Debug)]
pub(crate) struct Responses {
    converter: Converter,
}

impl Responses {
    /// Creates the state of an answer. `format` is the format name of data that goes back to this server.
    pub(crate) fn new(format: impl Into<Text>) -> Self {
        Self { converter: Converter::new(format.into()) }
    }
}

impl WireFormat for Responses {
    const FRAMING: Framing = Framing::Sse;
    /// Only some gateways send it: the last event is JSON.
    const END_MARKER: Option<&'static str> = Some("[DONE]");
    const IGNORED: &'static [&'static str] = &["sequence_number", "obfuscation", "logprobs"];

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        if !event.data.starts_with('{') {
            return read_other(event);
        }
        let mut object = Event::default();
        read(event.data, |json| object.read(json))?;
        if object.is_whole() {
            let mut response = Response::default();
            read(event.data, |json| response.read(json))?;
            return Ok(self.converter.convert_whole(&response, deltas));
        }
        let kind = object.kind.text();
        let name = kind.as_deref().or(event.name).unwrap_or_default();
        if name == "error" {
            return Ok(Meaning::Failure(Box::new(report_of(event.data))));
        }
        Ok(match self.converter.convert(name, &object, deltas) {
            Meaning::Unknown => Meaning::from_json(&value(event.data).unwrap_or_default()),
            known => known,
        })
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        self.converter.finish(deltas);
    }

    fn repeat(&mut self, _spelling: &str) -> bool {
        true
    }
}

/// Returns the error of an error event: an object in it, or its own fields, of which the type says nothing.
fn report_of(data: &str) -> Report {
    let mut event: Value = value(data).unwrap_or_default();
    if let Some(fields) = event.as_object_mut() {
        fields.remove("type");
    }
    Report::find(&event).unwrap_or_else(|| Report::read(&event))
}

#[cfg(test)]
mod tests;
