//! The Responses API as a [`WireFormat`].

use std::collections::VecDeque;

use advisor_core::{Delta, Text};
use provider_http::answer::{AnswerEvent, Meaning, WireFormat};
use provider_http::failure::Report;
use provider_http::fast_path::{Field, Framing};
use serde_json::Value;

use super::convert::Converter;
use super::wire::{EVENT, Event};
use crate::wire::{read, repair};

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

    fn read_object(
        &mut self,
        event: AnswerEvent<'_>,
        object: &Event<'_>,
        deltas: &mut VecDeque<Delta>,
    ) -> serde_json::Result<Meaning> {
        if object.is_whole() {
            return Ok(self.converter.convert_whole(&serde_json::from_str(event.data)?, deltas));
        }
        let name = object.kind.text().or(event.name).unwrap_or_default();
        if name == "error" {
            return Ok(Meaning::Failure(Box::new(report_of(event.data))));
        }
        Ok(match self.converter.convert(name, object, deltas) {
            Meaning::Unknown => Meaning::from_json(&read(event.data).unwrap_or_default()),
            known => known,
        })
    }
}

impl WireFormat for Responses {
    const FRAMING: Framing = Framing::Sse;
    const FIELDS: &'static Field = &EVENT;
    /// Only some gateways send it: the last event is JSON.
    const END_MARKER: Option<&'static str> = Some("[DONE]");

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        if !event.data.starts_with('{') {
            return read_other(event);
        }
        match serde_json::from_str(event.data) {
            Ok(object) => self.read_object(event, &object, deltas),
            Err(error) => {
                let repaired = repair(event.data).ok_or(error)?;
                let event = AnswerEvent::new(event.name, &repaired);
                Ok(match self.read_object(event, &serde_json::from_str(&repaired)?, deltas)? {
                    Meaning::Piece => Meaning::Rewritten,
                    other => other,
                })
            }
        }
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        self.converter.finish(deltas);
    }

    fn read_report(body: &str) -> Option<Report> {
        Report::find(&read(body)?)
    }
}

/// Reads JSON that is no object: a list of errors, or an error as plain text.
fn read_other(event: AnswerEvent<'_>) -> serde_json::Result<Meaning> {
    let is_error = event.name == Some("error");
    match serde_json::from_str::<Value>(event.data) {
        Ok(json) if is_error => Ok(Meaning::Failure(Box::new(Report::read(&json)))),
        Ok(json) => Ok(Meaning::from_json(&json)),
        Err(_) if is_error => Ok(Meaning::Failure(Box::new(Report::read(&event.data.into())))),
        Err(error) => Err(error),
    }
}

/// Returns the error of an error event: an object in it, or its own fields, of which the type says nothing.
fn report_of(data: &str) -> Report {
    let mut event: Value = read(data).unwrap_or_default();
    if let Some(fields) = event.as_object_mut() {
        fields.remove("type");
    }
    Report::find(&event).unwrap_or_else(|| Report::read(&event))
}

#[cfg(test)]
mod tests;
