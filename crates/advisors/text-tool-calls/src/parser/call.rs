//! `Call`: reads an open call up to its end, whatever its syntax.

use advisor_core::{Text, ToolCall};

use super::event::{OpenedCall, Output, ParserError, ParserLimits};
use super::input::Input;
use super::json;
use super::scan::{Found, Scan, Tag, TagKind, Tail, find_end};
use super::syntax::{Dialect, Opened, State};
use super::value::{ArgumentsWriter, ValueReader};
use crate::format::TextFormat;
use crate::tools::TextTools;

/// An open call, or other text between markers.
pub(super) struct Call {
    tools: TextTools,
    tool: Text,
    limits: ParserLimits,
    arguments: ArgumentsWriter,
    state: State,
}

impl Call {
    /// Consumes the opening of a call.
    pub(super) fn begin(
        opened: Opened,
        tools: &TextTools,
        limits: ParserLimits,
        input: &mut Input,
        out: &mut Output<'_>,
    ) -> Result<Self, ParserError> {
        let tool = opened.call.as_ref().map(|call| call.name.clone()).unwrap_or_default();
        let mut arguments = ArgumentsWriter::default();
        let is_empty = opened.call.is_some() && matches!(opened.state, State::Ended);
        if let Some(call) = opened.call {
            out.opened(call)?;
        }
        out.markup(input.take(opened.length));
        out.arguments(&opened.written);
        for (name, value) in &opened.members {
            arguments.member(name, value, out);
        }
        if let State::Body(reader) = &opened.state {
            reader.begin(&mut arguments, out);
        }
        if is_empty {
            arguments.end(out);
            out.closed(true);
        }
        Ok(Self { tools: tools.clone(), tool, limits, arguments, state: opened.state })
    }

    /// Reads on. Returns whether the call has ended.
    pub(super) fn read(
        &mut self,
        input: &mut Input,
        tail: Tail,
        out: &mut Output<'_>,
    ) -> Result<bool, ParserError> {
        loop {
            let state = std::mem::replace(&mut self.state, State::Ended);
            let (state, goes_on) = match state {
                State::Ended => return Ok(true),
                State::Json(scan) => self.read_json(scan, input, tail, out)?,
                state => self.read_markup(state, input, tail, out),
            };
            self.state = state;
            if !goes_on {
                return Ok(false);
            }
        }
    }

    /// Ends the call, which the end of the text cuts off.
    pub(super) fn cut(&self, out: &mut Output<'_>) {
        if !matches!(self.state, State::Text(_) | State::Ended) {
            out.closed(false);
        }
    }

    /// Returns what is next, and whether it can be read.
    fn read_markup(
        &mut self,
        state: State,
        input: &mut Input,
        tail: Tail,
        out: &mut Output<'_>,
    ) -> (State, bool) {
        let (state, end) = match state {
            State::Text(close) => {
                let end = read_until(close, input, tail, |text| out.text(text));
                (State::Text(close), end)
            }
            State::Unused(close) => {
                let end = read_until(close, input, tail, |text| out.body(text));
                (State::Unused(close), end)
            }
            State::Raw(close) => {
                let end = read_until(&close, input, tail, |text| {
                    out.body(text);
                    out.arguments(text);
                });
                (State::Raw(close), end)
            }
            State::Body(mut reader) => {
                let end = reader.read(input, tail, &self.arguments, out);
                (State::Body(reader), end)
            }
            State::Value(dialect, mut reader) => {
                let end = reader.read(input, tail, &self.arguments, out);
                (State::Value(dialect, reader), end)
            }
            State::Elements(dialect, scan) => return self.read_element(dialect, scan, input, tail, out),
            State::Json(_) | State::Ended => (state, None),
        };
        match end {
            Some(length) => (self.read_end(state, length, input, out), true),
            None => (state, false),
        }
    }

    /// Consumes the marker that ends a part of the call. Returns what is next.
    fn read_end(&mut self, state: State, length: usize, input: &mut Input, out: &mut Output<'_>) -> State {
        match state {
            State::Value(dialect, reader) => {
                out.body(input.take(length));
                self.end_value(reader, out);
                return State::Elements(dialect, Scan::default());
            }
            State::Body(reader) => {
                out.markup(input.take(length));
                self.end_value(reader, out);
                self.arguments.end(out);
                out.closed(true);
            }
            State::Text(_) => out.markup(input.take(length)),
            _ => {
                out.markup(input.take(length));
                out.closed(true);
            }
        }
        State::Ended
    }

    fn end_value(&mut self, reader: ValueReader, out: &mut Output<'_>) {
        let schema = self.tools.schema(&self.tool).property(&reader.name);
        reader.end(schema, &mut self.arguments, out);
    }

    /// Reads an element, or the end of the call. Anything else, and what follows, is passed on in the arguments: to
    /// leave it out would run the call without something that the model wrote.
    fn read_element(
        &mut self,
        dialect: &'static Dialect,
        mut scan: Scan,
        input: &mut Input,
        tail: Tail,
        out: &mut Output<'_>,
    ) -> (State, bool) {
        out.body(input.take_space());
        if input.rest().is_empty() {
            return (State::Elements(dialect, scan), false);
        }
        let window = input.window(self.limits.undecided);
        let found = if window.starts_with('<') { scan.tag(window) } else { Found::None(0) };
        let may_go_on = tail == Tail::Open && input.rest().len() < self.limits.undecided;
        let (tag, length) = match found {
            Found::Undecided if may_go_on => return (State::Elements(dialect, scan), false),
            Found::Whole(length) => (window.get(..length).and_then(Tag::read), length),
            Found::Undecided | Found::None(_) => (None, 0),
        };
        let Some(tag) = tag else { return (State::Raw(dialect.closing_tag()), true) };
        if tag.is(TagKind::Closing, dialect.call) {
            out.markup(input.take(length));
            self.arguments.end(out);
            out.closed(true);
            return (State::Ended, true);
        }
        let next = State::Elements(dialect, Scan::default());
        if dialect.is_list_of_arguments(&tag) {
            out.body(input.take(length));
            return (next, true);
        }
        let Some(reader) = self.reader(dialect, &tag) else {
            return (State::Raw(dialect.closing_tag()), true);
        };
        out.body(input.take(length));
        reader.begin(&mut self.arguments, out);
        if tag.kind == TagKind::Empty {
            self.end_value(reader, out);
            return (next, true);
        }
        (State::Value(dialect, reader), true)
    }

    /// Returns the reader of the argument that begins with this tag.
    fn reader(&self, dialect: &Dialect, tag: &Tag) -> Option<ValueReader> {
        let name = dialect.argument(tag)?;
        let close = format!("</{}>", tag.name);
        if dialect.format != TextFormat::Xml {
            let is_json = tag.attribute("string") == Some("false");
            return Some(if is_json {
                ValueReader::json(name, close)
            } else {
                ValueReader::text(name, close)
            });
        }
        let form = self.tools.form(&self.tool).filter(|form| form.body == *name);
        Some(match form {
            Some(form) => ValueReader::body(name, close, &form.body_text),
            None => ValueReader::element(name, &tag.name, self.tools.schema(&self.tool).property(name)),
        })
    }

    /// Reads JSON once it is whole, or cut off by the end of the text.
    fn read_json(
        &self,
        mut scan: Scan,
        input: &mut Input,
        tail: Tail,
        out: &mut Output<'_>,
    ) -> Result<(State, bool), ParserError> {
        let end = scan.json(input.rest());
        if end.is_none() && tail == Tail::Open {
            return Ok((State::Json(scan), false));
        }
        let json = input.take(end.unwrap_or(usize::MAX));
        if json.len() > self.limits.call {
            return Err(ParserError::CallTooLong { limit: self.limits.call });
        }
        let mut rest = json;
        for call in json::calls(json, &self.tools) {
            let start = call.range.start - (json.len() - rest.len());
            out.markup(rest.get(..start).unwrap_or_default());
            out.opened(OpenedCall {
                name: call.name.unwrap_or_else(|| ToolCall::UNNAMED.to_owned()).into(),
                id: call.id.filter(|id| !id.is_empty()).map(Text::from),
                format: TextFormat::Json,
            })?;
            out.body(json.get(call.range.clone()).unwrap_or_default());
            out.arguments(&call.arguments.unwrap_or_default());
            out.closed(call.is_complete);
            rest = json.get(call.range.end..).unwrap_or_default();
        }
        match end {
            Some(_) => out.markup(rest),
            None => out.text(rest),
        }
        Ok((State::Ended, true))
    }
}

/// Passes text on up to the marker `close`. Returns the bytes of the marker, once it is next.
fn read_until(close: &str, input: &mut Input, tail: Tail, emit: impl FnOnce(&str)) -> Option<usize> {
    let (before, end) = find_end(input.rest(), "", close, tail);
    emit(input.take(before));
    end
}
