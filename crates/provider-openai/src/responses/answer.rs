//! The Responses API as a [`WireFormat`]: converts one event to deltas.
//!
//! **Blocks.** Each content part of a message is one block, and so are each item of reasoning and each call. They are
//! numbered here, because the server's indexes and ids are not reliable ([`Items`]).
//!
//! **Order.** Blocks stand in the order in which they begin, items go back in that of the answer. An item whose place
//! among the blocks may be another one has its index in its data.
//!
//! **Gaps.** The end of a part, the end of its item and the snapshot at the end of the answer repeat the whole content.
//! Content of which no piece has streamed is taken from the first of them (Q59).
//!
//! **Server-side work**, such as a search or a call of an MCP tool, is opaque: it is no call for the tool loop. So is a
//! custom tool call, which xAI runs by itself.

mod content;
mod finish;
mod items;
mod part;
#[cfg(test)]
mod tests;
mod whole_item;

use std::collections::VecDeque;

use advisor_core::{Delta, DeltaKind, FinishReason, ProviderData, Text, ToolCallDelta};
use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
use provider_http::failure::Report;
use provider_http::json::{read, value};
use serde_json::{Value, json};

use super::wire::{Event, Item, ItemKind, OUTPUT_INDEX, Response};
use crate::answer::error_of;
use crate::audio::Audio;
use finish::finish_of;
use items::{Identity, Items};
use part::PartPosition;

/// Deltas that are made.
type Deltas = VecDeque<Delta>;
/// The success of a conversion. The error is the meaning of the event.
type Converted<T = ()> = Result<T, Meaning>;

/// One answer in the wire format of the Responses API.
#[derive(Debug)]
pub(crate) struct Responses {
    /// The format name of data that goes back to this server.
    format: Text,
    items: Items,
    /// Whether the id and the model of the answer were emitted. Several events repeat them.
    sent_origin: bool,
    /// Whether a tool was called.
    has_calls: bool,
    /// Whether a part of reasoning was emitted.
    has_reasoned: bool,
    /// Whether a program of the server ended.
    has_program_output: bool,
    /// The audio so far. It belongs to no item.
    audio: Audio,
    /// Whether the last event was a piece. Others come once: a second one may add nothing.
    is_piece: bool,
}

impl WireFormat for Responses {
    const FRAMING: Framing = Framing::Sse;
    /// Only some gateways send it: the last event is JSON.
    const END_MARKER: Option<&'static str> = Some("[DONE]");
    const IGNORED: &'static [&'static str] = &["sequence_number", "obfuscation", "logprobs"];

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut Deltas) -> serde_json::Result<Meaning> {
        if !event.data.starts_with('{') {
            return Ok(Meaning::from_json(&value(event.data)?));
        }
        let mut object = Event::default();
        read(event.data, |json| object.read(json))?;
        if object.is_whole() {
            let mut response = Response::default();
            read(event.data, |json| response.read(json))?;
            return Ok(self.convert_snapshot(&response, "completed", deltas));
        }
        let kind = object.kind.text();
        let name = kind.as_deref().or(event.name).unwrap_or_default();
        self.is_piece = name.ends_with(".delta");
        if name == "error" {
            return Ok(Meaning::Failure(Box::new(report_of(event.data))));
        }
        Ok(match self.convert(name, &object, deltas) {
            Meaning::Unknown => Meaning::from_json(&value(event.data).unwrap_or_default()),
            known => known,
        })
    }

    /// Appends the audio, if any is kept.
    fn finish(&mut self, deltas: &mut Deltas) {
        deltas.extend(self.audio.end(&self.format).map(Delta::from));
    }

    fn repeat(&mut self, _spelling: &str) -> bool {
        self.is_piece
    }

    fn kept(&self) -> usize {
        self.audio.kept()
    }
}

impl Responses {
    /// Creates the state of an answer. `format` is the format name of data that goes back to this server.
    pub(crate) fn new(format: impl Into<Text>) -> Self {
        Self {
            format: format.into(),
            items: Items::default(),
            sent_origin: false,
            has_calls: false,
            has_reasoned: false,
            has_program_output: false,
            audio: Audio::default(),
            is_piece: false,
        }
    }

    /// Appends the deltas of `event` to `deltas`. `name` is the type of the event.
    fn convert(&mut self, name: &str, event: &Event<'_>, deltas: &mut Deltas) -> Meaning {
        let converted = match name {
            "response.completed" => return self.end(event, "completed", deltas),
            "response.incomplete" => return self.end(event, "incomplete", deltas),
            "response.cancelled" => return self.end(event, "cancelled", deltas),
            "response.failed" => return Meaning::Failure(failure_of(event)),
            "keepalive" | "ping" => return Meaning::KeepAlive,
            _ if let Some(report) = error_of(event.error) => return Meaning::Failure(report),
            name if name.starts_with("response.") => self.piece(name, event, deltas),
            _ => return Meaning::Unknown,
        };
        match converted {
            Err(meaning) => meaning,
            Ok(()) => Meaning::Piece,
        }
    }

    /// Converts a piece of an answer. Progress of server-side work has no deltas, and neither has an event that is new.
    fn piece(&mut self, name: &str, event: &Event<'_>, deltas: &mut Deltas) -> Converted {
        let (in_content, in_summary) = (PartPosition::from_content(event), PartPosition::from_summary(event));
        match name {
            "response.output_text.delta" => self.text(event, DeltaKind::Text, deltas),
            "response.output_text.done" => self.end_text(event, event.text, DeltaKind::Text, deltas),
            "response.refusal.delta" => self.text(event, DeltaKind::Refusal, deltas),
            "response.refusal.done" => self.end_text(event, event.refusal, DeltaKind::Refusal, deltas),
            "response.reasoning_text.delta" => self.reasoning(event, in_content, deltas),
            "response.reasoning_text.done" => self.whole_reasoning(event, in_content, deltas),
            "response.reasoning_summary_text.delta" => self.reasoning(event, in_summary, deltas),
            "response.reasoning_summary_text.done" => self.whole_reasoning(event, in_summary, deltas),
            "response.function_call_arguments.delta" => self.arguments(event, deltas),
            "response.function_call_arguments.done" => self.end_arguments(event, deltas),
            "response.content_part.added" => self.begin_part(event),
            "response.content_part.done" => self.end_part(event, deltas),
            "response.output_text.annotation.added" => self.annotation(event, deltas),
            "response.output_item.added" => self.begin_item(event, deltas),
            "response.output_item.done" => self.finish_item(event, deltas),
            // A piece of audio cannot be played alone, so it is kept until the end.
            "response.audio.delta" => {
                self.audio.decode(&event.delta.text().unwrap_or_default());
                Ok(())
            }
            "response.audio.done" => {
                self.finish(deltas);
                Ok(())
            }
            "response.audio.transcript.delta" => {
                deltas.extend(event.delta.text().map(Delta::text));
                Ok(())
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                event.response.iter().for_each(|response| self.origin(response, deltas));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Appends the deltas of a snapshot. `status` is that of one that names none.
    fn convert_snapshot(&mut self, response: &Response<'_>, status: &str, deltas: &mut Deltas) -> Meaning {
        self.origin(response, deltas);
        if let Err(meaning) = self.snapshot(response, deltas) {
            return meaning;
        }
        if let Some(usage) = response.usage.as_ref().and_then(|counts| counts.to_usage()) {
            deltas.push_back(Delta::usage(usage));
        }
        if response.status.is("failed") {
            return Meaning::Failure(error_of(response.error).unwrap_or_default());
        }
        let completed = match () {
            () if self.has_calls => FinishReason::ToolCalls,
            // The model has not answered yet: it wants its items back.
            () if self.has_program_output && !self.items.has_message() => FinishReason::Paused,
            () => FinishReason::Stop,
        };
        match finish_of(response, status, completed) {
            Some(finish) => {
                deltas.push_back(Delta::finish(finish));
                Meaning::Whole
            }
            // The server still works on it: without an end the answer is truncated.
            None => Meaning::Piece,
        }
    }

    /// Converts the last event of a stream. Nothing of the answer follows it.
    fn end(&mut self, event: &Event<'_>, status: &str, deltas: &mut Deltas) -> Meaning {
        let nothing = Response::default();
        match self.convert_snapshot(event.response.as_deref().unwrap_or(&nothing), status, deltas) {
            Meaning::Whole => {
                deltas.push_back(Delta::done());
                Meaning::Piece
            }
            failure => failure,
        }
    }

    fn origin(&mut self, response: &Response<'_>, deltas: &mut Deltas) {
        let (id, model) = (response.id.text().map(Text::from), response.model.text().map(Text::from));
        if (id.is_some() || model.is_some()) && !std::mem::replace(&mut self.sent_origin, true) {
            deltas.push_back(Delta::origin(id, model));
        }
    }

    fn begin_item(&mut self, event: &Event<'_>, deltas: &mut Deltas) -> Converted {
        let Some(item) = &event.item else { return Ok(()) };
        let at = self.items.announced(Identity::from_item(item, event.output_index), item.kind())?;
        if item.kind() == ItemKind::Message {
            self.items.set_fields(at, data_of(&self.format, item), item.raw.len())?;
        }
        self.begin_call(at, item, deltas);
        Ok(())
    }

    /// Emits the name of a call, unless that was emitted or is missing.
    fn begin_call(&mut self, at: usize, item: &Item<'_>, deltas: &mut Deltas) {
        if item.kind() == ItemKind::FunctionCall
            && let Some(open) = self.items.at(at).filter(|open| !open.has_name)
            && let Some(name) = item.name.text()
        {
            (open.has_name, self.has_calls) = (true, true);
            let id = item.call_id.text().unwrap_or_default();
            let mut start = ToolCallDelta::start(open.number, Text::from(id), Text::from(name));
            start.provider_data = self.open(at);
            deltas.push_back(Delta::tool_call(start));
        }
    }

    fn finish_item(&mut self, event: &Event<'_>, deltas: &mut Deltas) -> Converted {
        let Some(item) = &event.item else { return Ok(()) };
        let at = self.items.of(Identity::from_item(item, event.output_index), item.kind())?;
        if self.lacks_content(at, item) {
            self.begin_call(at, item, deltas);
            return Ok(());
        }
        self.end_item(at, item, deltas)
    }

    /// Checks whether nothing has arrived of the content that an item should have. The snapshot may have it.
    fn lacks_content(&mut self, at: usize, item: &Item<'_>) -> bool {
        let Some(open) = self.items.at(at).filter(|open| !open.ended) else { return false };
        match item.kind() {
            // One that failed has none anywhere.
            ItemKind::Image => item.result.is_empty() && !item.status.is("failed"),
            ItemKind::Message => {
                let has_begun = open.parts.iter().any(|part| !part.is_empty());
                !has_begun && item.content.iter().all(|part| part.said().is_none())
            }
            ItemKind::FunctionCall => !open.has_arguments && item.arguments.is_empty(),
            ItemKind::Reasoning | ItemKind::Other => false,
        }
    }

    /// Notes that this part of a message opens if it is still empty.
    fn open_part(&mut self, at: usize, place: PartPosition) -> Converted {
        if self.items.part(at, place)?.is_some_and(|part| part.is_empty()) {
            self.open(at);
        }
        Ok(())
    }

    /// Notes that a block of the item opens. If the block may be out of its place, the index of the item goes back with
    /// the parts of a message, and is returned for a call.
    fn open(&mut self, at: usize) -> Option<ProviderData> {
        let index = self.items.open(at)?;
        let item = self.items.at(at)?;
        let data = ProviderData::new(self.format.clone(), json!({ OUTPUT_INDEX: index }));
        match item.kind {
            ItemKind::Message => item.add_data(data),
            ItemKind::FunctionCall => return Some(data),
            // Their JSON has it.
            ItemKind::Reasoning | ItemKind::Image | ItemKind::Other => {}
        }
        None
    }

    /// Converts the parts of the final snapshot that the stream lacks.
    fn snapshot(&mut self, response: &Response<'_>, deltas: &mut Deltas) -> Converted {
        let places = self.items.of_snapshot(&response.output)?;
        response.output.iter().zip(places).try_for_each(|(item, at)| self.end_item(at, item, deltas))
    }
}

/// Returns the data of an item beside its content, which goes back to the server with it.
fn data_of(format: &Text, item: &Item<'_>) -> Option<ProviderData> {
    let extras = item.extras();
    (!extras.is_empty()).then(|| ProviderData::new(format.clone(), Value::Object(extras)))
}

fn failure_of(event: &Event<'_>) -> Box<Report> {
    let in_response = event.response.as_ref().and_then(|response| error_of(response.error));
    in_response.or_else(|| error_of(event.error)).unwrap_or_default()
}

/// Returns the error of an error event: an object in it, or its own fields.
fn report_of(data: &str) -> Report {
    let event = value(data).unwrap_or_default();
    Report::find(&event).unwrap_or_else(|| Report::read(&event))
}
