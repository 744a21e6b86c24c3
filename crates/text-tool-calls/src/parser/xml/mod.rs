//! `XmlCall`: a call as an element.

mod body;
mod opening;

use self::body::{ArgumentForm, Body, is_broken_argument};
use self::opening::{TOOL, may_be_call, tool_of};
use super::event::{CallEnd, OpenedCall, Output};
use super::format::TextFormat;
use super::input::{Input, Tail};
use super::marker::{Close, Marker, find_close, marker_at};
use super::markup::tag::{Scanned, Tag, TagKind, TagScan};
use super::opening::Opening;
use super::settings::{OnCut, OnUnknownTool, ParserSettings};
use super::value::ValueReader;
use super::value::arguments::ArgumentsWriter;
use super::value::trimmed::Entities;
use crate::tools::TextTools;
use crate::tools::coercion::{ValueKind, leaf_value};

const TOOL_CLOSE: &str = "</tool>";

/// A call as an XML element: `<tool name="…">`, or the short form of a tool.
#[derive(Debug)]
pub(super) struct XmlCall {
    tools: TextTools,
    on_unknown: OnUnknownTool,
    max_tag: usize,
    scan: TagScan,
    /// The name of the tool, once it is known.
    tool: String,
    arguments: ArgumentsWriter,
    /// The argument of a short form that an attribute gives, used if the element has no text.
    fallback: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The opening tag, once it is complete.
    Opening(Option<Tag>),
    /// Between the elements of the body.
    Elements(Body),
    Comment(Body),
    /// The value of an argument, and the form of the argument.
    Value(ValueReader, ArgumentForm),
    /// The rest of the body, which is passed on in the arguments as it is.
    Raw,
    Ended,
}

impl XmlCall {
    pub(super) fn new(tools: &TextTools, settings: &ParserSettings) -> Self {
        Self {
            tools: tools.clone(),
            on_unknown: settings.on_unknown_tool.unwrap_or(OnUnknownTool::Call),
            max_tag: settings.limits.undecided,
            scan: TagScan::default(),
            tool: String::new(),
            arguments: ArgumentsWriter::default(),
            fallback: String::new(),
            state: State::Opening(None),
        }
    }

    pub(super) fn open(&mut self, text: &str) -> Opening {
        if !may_be_call(text.get(1..).unwrap_or_default(), &self.tools) {
            return Opening::No(1);
        }
        match self.scan.scan(text) {
            Scanned::Incomplete => Opening::Undecided,
            Scanned::NoTag(length) => Opening::No(length),
            Scanned::Tag(tag) => match tool_of(&tag, &self.tools, self.on_unknown) {
                Some(tool) => {
                    self.tool = tool;
                    self.state = State::Opening(Some(tag));
                    Opening::Yes
                }
                None => Opening::No(tag.length),
            },
        }
    }

    /// Reads on. Returns whether the call has ended.
    pub(super) fn read(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> bool {
        loop {
            let next = match &mut self.state {
                State::Opening(tag) => tag.take().map(|tag| self.read_opening(&tag, input, out)),
                State::Elements(body) => {
                    let body = *body;
                    self.read_elements(body, input, tail, out)
                }
                State::Comment(body) => read_comment(*body, input, tail, out),
                State::Value(reader, _) => {
                    let ended = reader.read(input, tail, &mut self.arguments, out);
                    ended.then(|| self.end_value(input, out))
                }
                State::Raw => self.read_raw(input, tail, out),
                State::Ended => return true,
            };
            match next {
                Some(next) => self.state = next,
                None => return false,
            }
        }
    }

    pub(super) fn cut(mut self, on_cut: OnCut, out: &mut Output<'_>) {
        if on_cut == OnCut::Complete {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Raw => {}
                State::Value(reader, _) => {
                    reader.end(&mut self.arguments, out);
                    self.arguments.end(out);
                }
                _ => self.arguments.end(out),
            }
        }
        out.closed(on_cut.end());
    }

    fn read_opening(&mut self, tag: &Tag, input: &mut Input, out: &mut Output<'_>) -> State {
        self.scan = TagScan::default();
        out.opened(OpenedCall::new(TextFormat::Xml, self.tool.as_str()));
        out.markup(input.take(tag.length));
        let form = self.tools.form(&self.tool).cloned();
        let short_form = form.as_ref().filter(|_| !tag.name.eq_ignore_ascii_case(TOOL));
        if let Some(form) = short_form {
            let attributes = tag.attributes.iter();
            self.fallback = form.body_among(attributes.map(|(name, value)| (name.as_str(), value.as_str())));
        }
        for (name, value) in &tag.attributes {
            let argument = form.as_ref().map_or(Some(name.as_str()), |form| form.argument(name));
            let is_body = |argument: &&str| short_form.is_some_and(|form| form.body == **argument);
            let is_name = |argument: &&str| short_form.is_none() && argument.eq_ignore_ascii_case("name");
            if let Some(argument) = argument.filter(|argument| !is_body(argument) && !is_name(argument)) {
                self.write_attribute(argument, value, out);
            }
        }
        for ignored in form.iter().flat_map(|form| &form.ignored) {
            self.arguments.ignore(ignored);
        }
        if tag.kind == TagKind::Empty {
            if let Some(form) = short_form.filter(|_| !self.fallback.is_empty()) {
                self.arguments.member(&form.body, &self.fallback.as_str().into(), out);
            }
            return self.end(out);
        }
        let Some(form) = short_form else { return State::Elements(Body::Undecided) };
        let reader = ValueReader::for_form(form, format!("</{}>", form.tool), Entities::Decoded);
        reader.begin(&mut self.arguments, out);
        State::Value(reader, ArgumentForm::ShortForm)
    }

    /// Writes an attribute that is an argument. Others are left out.
    fn write_attribute(&mut self, argument: &str, value: &str, out: &mut Output<'_>) {
        if self.tools.has_argument(&self.tool, argument) {
            let value = match self.tools.kind_of(&self.tool, argument) {
                ValueKind::Text => value.into(),
                ValueKind::Other(schema) => leaf_value(value, schema.schema()),
            };
            self.arguments.member(argument, &value, out);
        }
    }

    fn read_elements(
        &mut self,
        body: Body,
        input: &mut Input,
        tail: Tail,
        out: &mut Output<'_>,
    ) -> Option<State> {
        out.body(input.take_space());
        let rest = input.rest();
        match rest.find('<') {
            _ if rest.is_empty() => return None,
            Some(0) => {}
            _ if body == Body::Undecided => return Some(State::Raw),
            text => {
                out.body(input.take(text.unwrap_or(usize::MAX)));
                return Some(State::Elements(body));
            }
        }
        match marker_at(rest, "<!--") {
            Marker::Whole => return Some(State::Comment(body)),
            Marker::Maybe if tail == Tail::Open => return None,
            Marker::Maybe | Marker::None => {}
        }
        match self.scan.scan(input.window(self.max_tag)) {
            Scanned::Incomplete if tail == Tail::Open && rest.len() < self.max_tag => return None,
            Scanned::Tag(tag) => {
                self.scan = TagScan::default();
                return Some(self.read_tag(&tag, body, input, out));
            }
            Scanned::Incomplete | Scanned::NoTag(_) => {}
        }
        self.scan = TagScan::default();
        // To leave out an argument would run the call without it.
        if body == Body::Undecided || is_broken_argument(input.window(self.max_tag), &self.tool, &self.tools)
        {
            return Some(State::Raw);
        }
        out.body(input.take(1));
        Some(State::Elements(body))
    }

    fn read_tag(&mut self, tag: &Tag, body: Body, input: &mut Input, out: &mut Output<'_>) -> State {
        if tag.is(TagKind::Closing, TOOL) {
            out.markup(input.take(tag.length));
            return self.end(out);
        }
        out.body(input.take(tag.length));
        if tag.is(TagKind::Opening, "arguments") {
            return State::Elements(body);
        }
        if tag.name.eq_ignore_ascii_case("arguments") || tag.kind == TagKind::Closing {
            return State::Elements(Body::Elements);
        }
        let is_argument = tag.name.eq_ignore_ascii_case("arg");
        let name = tag.attribute("name").filter(|_| is_argument).unwrap_or(&tag.name);
        let form = self.tools.form(&self.tool);
        let argument = form.and_then(|form| form.argument(name)).unwrap_or(name);
        let reader = self.reader(argument, &tag.name);
        reader.begin(&mut self.arguments, out);
        if tag.kind == TagKind::Empty {
            reader.end(&mut self.arguments, out);
            return State::Elements(Body::Elements);
        }
        State::Value(reader, ArgumentForm::Element)
    }

    fn reader(&self, argument: &str, element: &str) -> ValueReader {
        let close = format!("</{element}>");
        match self.tools.form(&self.tool).filter(|form| form.body == *argument) {
            Some(form) => ValueReader::for_form(form, close, Entities::Decoded),
            None => match self.tools.kind_of(&self.tool, argument) {
                ValueKind::Text => ValueReader::trimmed(argument, close, Entities::Decoded),
                ValueKind::Other(schema) => ValueReader::nested(argument, close, element, schema),
            },
        }
    }

    fn end_value(&mut self, input: &mut Input, out: &mut Output<'_>) -> State {
        let State::Value(reader, form) = std::mem::replace(&mut self.state, State::Ended) else {
            return State::Ended;
        };
        let close = input.take(reader.close().len());
        match form {
            ArgumentForm::Element => {
                out.body(close);
                reader.end(&mut self.arguments, out);
                State::Elements(Body::Elements)
            }
            ArgumentForm::ShortForm => {
                out.markup(close);
                if self.arguments.string_is_empty() {
                    self.arguments.piece(&self.fallback, out);
                }
                reader.end(&mut self.arguments, out);
                self.end(out)
            }
        }
    }

    fn read_raw(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Option<State> {
        let close = find_close(input.rest(), TOOL_CLOSE, tail);
        let (Close::At(length) | Close::Beyond(length)) = close;
        let text = input.take(length);
        out.body(text);
        out.arguments(text);
        if matches!(close, Close::Beyond(_)) {
            return None;
        }
        out.markup(input.take(TOOL_CLOSE.len()));
        out.closed(CallEnd::Complete);
        Some(State::Ended)
    }

    fn end(&mut self, out: &mut Output<'_>) -> State {
        self.arguments.end(out);
        out.closed(CallEnd::Complete);
        State::Ended
    }
}

fn read_comment(body: Body, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Option<State> {
    match find_close(input.rest(), "-->", tail) {
        Close::At(length) => {
            out.body(input.take(length + 3));
            Some(State::Elements(body))
        }
        Close::Beyond(length) => {
            out.body(input.take(length));
            None
        }
    }
}
