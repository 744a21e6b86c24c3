//! `Open`: the segments of a block that is open: a text, a text with calls in it, or a call.

use std::collections::HashSet;

use advisor_core::{Block, BlockDelta, ProviderData, Text, ToolCall};
use serde_json::{Map, Value};

use super::event::{BrokenEnd, Invocation, SegmentEvent, SegmentType};
use crate::parser::TextCallParser;
use crate::parser::event::{ParserError, ParserEvent};
use crate::string_fields::JsonStringFields;
use crate::tools::{BodyText, TextTools, ToolForm};

/// What the segments of an answer share, and where their events go.
#[derive(Default)]
pub(super) struct Segments {
    pub(super) tools: TextTools,
    pub(super) ids: SegmentIds,
    /// The calls that the texts of the round may still have.
    pub(super) calls_left: usize,
    pub(super) events: Vec<SegmentEvent>,
    pub(super) invocations: Vec<Invocation>,
}

/// The ids of segments: a prefix and a number, or the id that a call has.
#[derive(Default)]
pub(super) struct SegmentIds {
    prefix: Text,
    texts: usize,
    calls: usize,
    used: HashSet<Text>,
}

impl SegmentIds {
    pub(super) fn new(prefix: Text) -> Self {
        Self { prefix, ..Self::default() }
    }

    /// The ids of another answer, with the same prefix.
    pub(super) fn renewed(&self) -> Self {
        Self::new(self.prefix.clone())
    }

    pub(super) fn next_text(&mut self) -> Text {
        self.texts += 1;
        format!("{}text_{}", self.prefix, self.texts).into()
    }

    /// Returns the id of a call: its own, unless another segment has it.
    fn call(&mut self, own: Option<&Text>) -> Text {
        let mut id = own.filter(|id| !id.is_empty()).cloned();
        loop {
            let candidate = id.take().unwrap_or_else(|| {
                self.calls += 1;
                format!("{}call_{}", self.prefix, self.calls).into()
            });
            if self.used.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}

/// The segments of an open block.
pub(super) enum Open {
    Text(TextSegment),
    Parsed(Box<ParsedText>),
    Tool(Box<ToolSegment>),
}

/// The end of a block.
#[derive(Clone, Copy)]
pub(super) enum End<'a> {
    /// The block is complete.
    Closed(&'a Block),
    /// The answer ended within the block.
    Cut,
    Broken(&'a BrokenEnd),
}

impl Open {
    pub(super) fn text(kind: SegmentType, ids: &mut SegmentIds) -> Self {
        Self::Text(TextSegment { id: ids.next_text(), kind, is_started: false })
    }

    pub(super) fn parsed(parser: TextCallParser) -> Self {
        Self::Parsed(Box::new(ParsedText { parser, text: None, call: None }))
    }

    pub(super) fn tool(name: &Text, id: Option<&Text>, all: &mut Segments) -> Self {
        Self::Tool(Box::new(ToolSegment::new(name.clone(), id, all)))
    }

    /// Takes a piece of the block.
    pub(super) fn push(&mut self, delta: &BlockDelta, all: &mut Segments) -> Result<(), ParserError> {
        match (self, delta) {
            (Self::Parsed(parsed), BlockDelta::Text(text)) => return parsed.push(text, all),
            (
                Self::Text(segment),
                BlockDelta::Text(text) | BlockDelta::Reasoning(text) | BlockDelta::Refusal(text),
            ) => segment.push(text, &mut all.events),
            (Self::Tool(call), BlockDelta::Arguments(text)) => {
                call.push_arguments(text, &mut all.events);
                call.push_written(text, &mut all.events);
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the segments of the block.
    pub(super) fn end(self, end: End<'_>, all: &mut Segments) -> Result<(), ParserError> {
        match (self, end) {
            (Self::Text(text), End::Broken(broken)) => text.end(Some(broken), &mut all.events),
            (Self::Text(text), _) => text.end(None, &mut all.events),
            (Self::Parsed(parsed), end) => return parsed.end(end, all),
            (Self::Tool(call), End::Closed(content)) => match content.as_tool_call() {
                Some(whole) if whole.complete => call.end(content.provider_data(), all),
                _ => call.break_off(&BrokenEnd::Failed("the call is incomplete".into()), &mut all.events),
            },
            (Self::Tool(call), End::Cut) => call.break_off(&BrokenEnd::cut(), &mut all.events),
            (Self::Tool(call), End::Broken(broken)) => call.break_off(broken, &mut all.events),
        }
        Ok(())
    }
}

/// A segment of text or of reasoning; it starts with its first character.
pub(super) struct TextSegment {
    id: Text,
    kind: SegmentType,
    is_started: bool,
}

impl TextSegment {
    fn push(&mut self, text: &str, events: &mut Vec<SegmentEvent>) {
        if text.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.is_started, true) {
            events.push(SegmentEvent::start(&self.id, self.kind));
        }
        events.push(SegmentEvent::content(&self.id, text));
    }

    fn end(self, broken: Option<&BrokenEnd>, events: &mut Vec<SegmentEvent>) {
        if self.is_started {
            let end = SegmentEvent::end(&self.id);
            events.push(broken.cloned().into_iter().fold(end, SegmentEvent::with_broken_end));
        }
    }
}

/// The segments of one text block that may have calls in it.
pub(super) struct ParsedText {
    parser: TextCallParser,
    text: Option<TextSegment>,
    call: Option<ToolSegment>,
}

impl ParsedText {
    fn push(&mut self, text: &str, all: &mut Segments) -> Result<(), ParserError> {
        let mut parsed = Vec::new();
        let result = self.parser.read(Some(text), &mut all.calls_left, &mut parsed);
        parsed.into_iter().for_each(|event| self.take(event, all));
        result
    }

    /// Ends the block. Text that is held back is emitted first.
    fn end(mut self, end: End<'_>, all: &mut Segments) -> Result<(), ParserError> {
        let mut parsed = Vec::new();
        let result = self.parser.read(None, &mut all.calls_left, &mut parsed);
        for event in parsed {
            match (event, end) {
                // Not even a call that was undecided until now, and is complete, may run.
                (ParserEvent::Closed { .. }, End::Broken(broken)) => self.end_open(Some(broken), all),
                (event, _) => self.take(event, all),
            }
        }
        match end {
            End::Broken(broken) => {
                self.end_open(Some(broken), all);
                // An error has already ended the parser, and then nothing is held back.
                Ok(())
            }
            End::Closed(_) | End::Cut => {
                self.end_open(None, all);
                result
            }
        }
    }

    /// Ends the open segments.
    fn end_open(&mut self, end: Option<&BrokenEnd>, all: &mut Segments) {
        if let Some(text) = self.text.take() {
            text.end(end, &mut all.events);
        }
        if let Some(call) = self.call.take() {
            call.break_off(end.unwrap_or(&BrokenEnd::cut()), &mut all.events);
        }
    }

    fn take(&mut self, event: ParserEvent, all: &mut Segments) {
        match (event, &mut self.call) {
            (ParserEvent::Text(text), _) => {
                let new =
                    || TextSegment { id: all.ids.next_text(), kind: SegmentType::Text, is_started: false };
                self.text.get_or_insert_with(new).push(&text, &mut all.events);
            }
            (ParserEvent::Opened(opened), _) => {
                if let Some(text) = self.text.take() {
                    text.end(None, &mut all.events);
                }
                self.call = Some(ToolSegment::new(opened.name, opened.id.as_ref(), all));
            }
            (ParserEvent::Body(text), Some(call)) => call.push_written(&text, &mut all.events),
            (ParserEvent::Arguments(text), Some(call)) => call.push_arguments(&text, &mut all.events),
            (ParserEvent::Closed { complete: true }, _) => {
                if let Some(call) = self.call.take() {
                    call.end(&[], all);
                }
            }
            (ParserEvent::Closed { complete: false }, _) => self.end_open(None, all),
            (ParserEvent::Markup(_) | ParserEvent::Body(_) | ParserEvent::Arguments(_), _) => {}
        }
    }
}

/// The segment of a call, until it ends.
pub(super) struct ToolSegment {
    id: Text,
    name: Text,
    arguments: String,
    /// The argument that is the content. `None`: the content is the text of the call, or of its arguments.
    field: Option<Field>,
}

/// The argument that is the content of a segment, and those that its start waits for.
struct Field {
    form: ToolForm,
    /// The content, of which what was emitted is taken, and the required arguments.
    reader: JsonStringFields,
    is_started: bool,
}

impl ToolSegment {
    fn new(name: Text, id: Option<&Text>, all: &mut Segments) -> Self {
        let field = all.tools.form(&name).map(|form| Field {
            form: form.clone(),
            reader: JsonStringFields::new([&form.body].into_iter().chain(&form.required).cloned()),
            is_started: false,
        });
        let mut segment = Self { id: all.ids.call(id), name, arguments: String::new(), field };
        match &segment.field {
            None => segment.start(Map::new(), &mut all.events),
            Some(_) => segment.start_field(false, &mut all.events),
        }
        segment
    }

    /// Takes a piece of the arguments.
    fn push_arguments(&mut self, arguments: &str, events: &mut Vec<SegmentEvent>) {
        self.arguments.push_str(arguments);
        if let Some(field) = &mut self.field {
            field.reader.push(arguments);
        }
        self.start_field(false, events);
    }

    /// Takes a piece of what the model wrote. It is left out where the content is an argument.
    fn push_written(&self, text: &str, events: &mut Vec<SegmentEvent>) {
        if self.field.is_none() && !text.is_empty() {
            events.push(SegmentEvent::content(&self.id, text));
        }
    }

    fn start(&self, metadata: Map<String, Value>, events: &mut Vec<SegmentEvent>) {
        let start = SegmentEvent::start(&self.id, SegmentType::for_tool(&self.name));
        let start = start.with_metadata("tool_name", self.name.as_str());
        events.push(metadata.into_iter().fold(start, |start, (key, value)| start.with_metadata(key, value)));
    }

    /// Starts the segment once its required arguments are complete, and emits the content so far. At the end, it also
    /// starts without them, so that its end has a start.
    fn start_field(&mut self, is_end: bool, events: &mut Vec<SegmentEvent>) {
        let Some(Field { reader, is_started, .. }) = &mut self.field else { return };
        let Some((body, required)) = reader.fields.split_first_mut() else { return };
        if !*is_started && !is_end && !required.iter().all(|argument| argument.is_complete) {
            return;
        }
        let content = std::mem::take(&mut body.value);
        if !std::mem::replace(is_started, true) {
            let complete = required.iter().filter(|argument| argument.is_complete);
            let metadata =
                complete.map(|argument| (argument.name.to_string(), argument.value.as_str().into()));
            let metadata = metadata.collect();
            self.start(metadata, events);
        }
        if !content.is_empty() {
            events.push(SegmentEvent::content(&self.id, content));
        }
    }

    /// Ends a complete call with this data of the provider. It is an invocation, unless its name or arguments are
    /// missing or broken.
    fn end(mut self, data: &[ProviderData], all: &mut Segments) {
        let arguments = match self.parsed() {
            Ok(arguments) => arguments,
            Err(error) => return self.break_off(&BrokenEnd::Failed(error), &mut all.events),
        };
        self.start_field(true, &mut all.events);
        let end = SegmentEvent::end(&self.id).with_metadata("tool_name", self.name.as_str());
        all.events.push(end.with_metadata("arguments", arguments.clone()));
        let provider_data = data.to_vec();
        all.invocations.push(Invocation { id: self.id, name: self.name, arguments, provider_data });
    }

    /// Ends a call that must not run.
    fn break_off(mut self, end: &BrokenEnd, events: &mut Vec<SegmentEvent>) {
        self.start_field(true, events);
        let event = SegmentEvent::end(&self.id).with_metadata("tool_name", self.name.as_str());
        events.push(event.with_broken_end(end.clone()));
    }

    fn parsed(&self) -> Result<Map<String, Value>, Text> {
        if self.name == *ToolCall::UNNAMED {
            return Err("the call has no name".into());
        }
        let text = if ToolCall::gives_none(&self.arguments) { "{}" } else { &self.arguments };
        let arguments: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| Text::from(format!("the arguments are no JSON object: {error}")))?;
        if let Some(Field { form, .. }) = &self.field {
            // A command that is empty does nothing; a file may be empty.
            let body = Some(&form.body).filter(|_| form.body_text == BodyText::Value);
            let is_missing = |name: &&Text| arguments.get(name.as_str()).is_none_or(|value| *value == "");
            if let Some(name) = form.required.iter().chain(body).find(is_missing) {
                return Err(format!("the argument `{name}` is missing").into());
            }
        }
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_calls_keep_their_own() {
        let mut ids = SegmentIds::new("t:".into());
        let mut call = |own: &str| ids.call(Some(&own.into())).to_string();
        let calls = ["c1", "", "c1", "t:call_3", "run_bash:0", "run_bash:1"].map(&mut call);
        assert_eq!(calls, ["c1", "t:call_1", "t:call_2", "t:call_3", "run_bash:0", "run_bash:1"]);
        assert_eq!(call("c1"), "t:call_4", "an id that a call has brought is not made again");
        assert_eq!([ids.next_text(), ids.next_text()], ["t:text_1", "t:text_2"]);
        assert_eq!(ids.renewed().call(Some(&"c1".into())), "c1", "another answer starts from the beginning");
    }
}
