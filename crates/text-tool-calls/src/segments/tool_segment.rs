//! `ToolSegment`: the segment of a call, whose start may wait for arguments.

use advisor_core::{ProviderData, Text, ToolCall};
use serde_json::{Map, Value};

use super::event::{BrokenEnd, Invocation, SegmentEvent, SegmentType};
use crate::string_fields::JsonStringFields;
use crate::tools::{BodyText, ToolForm};

/// The segment of a call, until it ends.
#[derive(Debug)]
pub(super) struct ToolSegment {
    id: Text,
    name: Text,
    arguments: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// The text of the call, or the text of its arguments.
    AsWritten,
    /// One argument, decoded.
    Field(Box<Field>),
}

/// The argument that is the content of a segment, and those that its start waits for.
#[derive(Debug)]
struct Field {
    form: ToolForm,
    reader: JsonStringFields,
    /// The required arguments that are complete.
    required: Map<String, Value>,
    /// The part of a required argument that has arrived.
    incomplete: String,
    is_started: bool,
    /// Content that arrived before the start.
    early: String,
}

impl ToolSegment {
    /// Begins the segment of a call; `form` is the short form of its tool.
    pub(super) fn new(id: Text, name: Text, form: Option<&ToolForm>, events: &mut Vec<SegmentEvent>) -> Self {
        let content = match form {
            None => Content::AsWritten,
            Some(form) => Content::Field(Box::new(Field {
                form: form.clone(),
                reader: JsonStringFields::new(form.required.iter().chain([&form.body]).cloned()),
                required: Map::new(),
                incomplete: String::new(),
                is_started: false,
                early: String::new(),
            })),
        };
        let mut segment = Self { id, name, arguments: String::new(), content };
        segment.start_if_ready(events);
        segment
    }

    /// Takes a piece of the arguments. `written` is the text that shows it, if that is not the arguments.
    pub(super) fn push_arguments(&mut self, arguments: &str, events: &mut Vec<SegmentEvent>) {
        self.arguments.push_str(arguments);
        let Content::Field(field) = &mut self.content else { return };
        for piece in field.reader.push(arguments) {
            if piece.field == field.form.body {
                field.early.push_str(&piece.text);
            } else {
                field.incomplete.push_str(&piece.text);
                if piece.is_end {
                    let value = std::mem::take(&mut field.incomplete);
                    field.required.insert(piece.field.to_string(), value.into());
                }
            }
        }
        self.start_if_ready(events);
        self.emit_field(events);
    }

    /// Takes a piece of what the model wrote. It is left out where the content is an argument.
    pub(super) fn push_written(&mut self, text: &str, events: &mut Vec<SegmentEvent>) {
        if matches!(self.content, Content::AsWritten) && !text.is_empty() {
            events.push(SegmentEvent::content(&self.id, text));
        }
    }

    fn start_if_ready(&mut self, events: &mut Vec<SegmentEvent>) {
        let metadata = match &mut self.content {
            Content::AsWritten if self.arguments.is_empty() => Map::new(),
            Content::Field(field)
                if !field.is_started && field.required.len() == field.form.required.len() =>
            {
                field.is_started = true;
                field.required.clone()
            }
            _ => return,
        };
        self.start(metadata, events);
    }

    fn start(&self, metadata: Map<String, Value>, events: &mut Vec<SegmentEvent>) {
        let start = SegmentEvent::start(&self.id, SegmentType::for_tool(&self.name));
        let start = start.with_metadata("tool_name", self.name.as_str());
        events.push(metadata.into_iter().fold(start, |start, (key, value)| start.with_metadata(key, value)));
    }

    fn emit_field(&mut self, events: &mut Vec<SegmentEvent>) {
        if let Content::Field(field) = &mut self.content
            && field.is_started
            && !field.early.is_empty()
        {
            events.push(SegmentEvent::content(&self.id, std::mem::take(&mut field.early)));
        }
    }

    /// Ends a complete call with this data of the provider. Returns its invocation, unless its name or arguments are
    /// missing or broken.
    pub(super) fn end(mut self, data: &[ProviderData], events: &mut Vec<SegmentEvent>) -> Option<Invocation> {
        let arguments = match self.parsed() {
            Ok(arguments) => arguments,
            Err(error) => {
                self.break_off(BrokenEnd::Failed(error), events);
                return None;
            }
        };
        self.start_late(events);
        let end = SegmentEvent::end(&self.id).with_metadata("tool_name", self.name.as_str());
        events.push(end.with_metadata("arguments", arguments.clone()));
        Some(Invocation { id: self.id, name: self.name, arguments, provider_data: data.to_vec() })
    }

    /// Ends a call that must not run.
    pub(super) fn break_off(&mut self, end: BrokenEnd, events: &mut Vec<SegmentEvent>) {
        self.start_late(events);
        let event = SegmentEvent::end(&self.id).with_metadata("tool_name", self.name.as_str());
        events.push(event.with_broken_end(end));
    }

    /// Starts a segment whose required arguments never came, so that its end has a start.
    fn start_late(&mut self, events: &mut Vec<SegmentEvent>) {
        let metadata = match &mut self.content {
            Content::Field(field) if !field.is_started => {
                field.is_started = true;
                std::mem::take(&mut field.required)
            }
            _ => return,
        };
        self.start(metadata, events);
        self.emit_field(events);
    }

    fn parsed(&self) -> Result<Map<String, Value>, Text> {
        if self.name == *ToolCall::UNNAMED {
            return Err("the call has no name".into());
        }
        let text = if ToolCall::gives_none(&self.arguments) { "{}" } else { &self.arguments };
        let arguments: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| Text::from(format!("the arguments are no JSON object: {error}")))?;
        if let Content::Field(field) = &self.content {
            // A command that is empty does nothing; a file may be empty.
            let body = Some(&field.form.body).filter(|_| field.form.body_text == BodyText::Value);
            let mut needed = field.form.required.iter().chain(body);
            let is_missing = |name: &&Text| arguments.get(name.as_str()).is_none_or(|value| *value == "");
            if let Some(name) = needed.find(is_missing) {
                return Err(format!("the argument `{name}` is missing").into());
            }
        }
        Ok(arguments)
    }
}
