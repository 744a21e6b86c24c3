//! `DeepSeekCalls`: the markup of DeepSeek's later models (DSML).

mod markup;

use advisor_core::ToolCall;

use self::markup::{ASCII_BAR, Attributes, BAR, ListTag, Markup, Tag};
use super::list::{ListState, Progress};
use crate::parser::event::{CallEnd, OpenedCall, Output};
use crate::parser::format::TextFormat;
use crate::parser::input::{Input, Tail};
use crate::parser::marker::{Close, Marker, find_close, marker_at};
use crate::parser::opening::Opening;
use crate::parser::settings::{OnCut, OnUnknownTool, ParserSettings};
use crate::parser::value::arguments::ArgumentsWriter;
use crate::tools::TextTools;

const CALL: &str = "invoke";
const ARGUMENT: &str = "parameter";

/// Calls in the markup of DeepSeek's models: `<｜DSML｜invoke name="…">` with an element per parameter.
#[derive(Debug)]
pub(in crate::parser) struct DeepSeekCalls {
    tools: TextTools,
    on_unknown: OnUnknownTool,
    markup: Markup,
    arguments: ArgumentsWriter,
    list: ListState,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Between,
    /// In a call, between its parameters.
    Call,
    /// In a parameter that is a string.
    Text,
    /// In a parameter that is JSON.
    Json,
    /// In a call with other text than parameters, which is passed on as its arguments.
    Raw,
}

impl DeepSeekCalls {
    pub(in crate::parser) fn new(tools: &TextTools, settings: &ParserSettings) -> Self {
        Self {
            tools: tools.clone(),
            on_unknown: settings.on_unknown_tool.unwrap_or(OnUnknownTool::Call),
            markup: Markup::new(BAR, settings.limits.undecided),
            arguments: ArgumentsWriter::default(),
            list: ListState::Before,
            state: State::Between,
        }
    }

    pub(in crate::parser) fn open(&mut self, text: &str) -> Opening {
        match text.chars().nth(1) {
            None => return Opening::Undecided,
            Some(bar @ (BAR | ASCII_BAR)) => self.markup.set_bar(bar),
            Some(_) => return Opening::No(1),
        }
        // Without a list, the whole tag of a call is needed: a broken one is no call.
        match (self.markup.list_tag(text), self.markup.tag(CALL, text, Tail::Open)) {
            (ListTag::Opening(_), _) => Opening::Yes,
            (_, Tag::Whole(attributes, _)) if self.is_call(&attributes) => Opening::Yes,
            (_, Tag::Whole(_, length) | Tag::None(length)) if length > 1 => Opening::No(length),
            (ListTag::Undecided, _) | (_, Tag::Undecided) => Opening::Undecided,
            _ => Opening::No(1),
        }
    }

    fn is_call(&self, attributes: &Attributes) -> bool {
        let is_known = attributes.name().is_some_and(|name| self.tools.contains(name));
        is_known || self.on_unknown == OnUnknownTool::Call
    }

    /// Reads on. Returns whether the calls have ended.
    pub(in crate::parser) fn read(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> bool {
        loop {
            let progress = match self.state {
                State::Between => self.read_between(input, tail, out),
                State::Call => self.read_call(input, tail, out),
                State::Text | State::Json => self.read_value(input, tail, out),
                State::Raw => self.read_raw(input, tail, out),
            };
            match progress {
                Progress::Made => {}
                Progress::Waits => return false,
                Progress::Ended => return true,
            }
        }
    }

    fn read_between(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Progress {
        if self.list == ListState::After {
            return Progress::Ended;
        }
        out.markup(input.take_space());
        let rest = input.rest();
        if rest.is_empty() {
            return Progress::Waits;
        }
        match self.markup.list_tag(rest) {
            ListTag::Opening(length) => {
                out.markup(input.take(length));
                self.list = ListState::List;
                return Progress::Made;
            }
            ListTag::Closing(length) => {
                out.markup(input.take(length));
                return Progress::Ended;
            }
            ListTag::Undecided if tail == Tail::Open => return Progress::Waits,
            ListTag::Undecided | ListTag::None => {}
        }
        match self.markup.tag(CALL, rest, tail) {
            Tag::Whole(attributes, length) if self.is_call(&attributes) => {
                let name = attributes.name().unwrap_or(ToolCall::UNNAMED);
                out.opened(OpenedCall::new(TextFormat::DeepSeek, name));
                out.markup(input.take(length));
                self.arguments = ArgumentsWriter::default();
                self.state = State::Call;
                Progress::Made
            }
            Tag::Undecided => Progress::Waits,
            Tag::Whole(..) | Tag::None(_) => Progress::Ended,
        }
    }

    fn read_call(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Progress {
        out.body(input.take_space());
        let rest = input.rest();
        let close = marker_at(rest, &self.markup.closing(CALL));
        match (close, self.markup.tag(ARGUMENT, rest, Tail::Open)) {
            (Marker::Whole, _) => {
                self.end_call(input, out);
                return Progress::Made;
            }
            (_, Tag::Whole(attributes, length)) if attributes.name().is_some() => {
                let name = attributes.name().unwrap_or_default();
                if attributes.attribute("string") == Some("false") {
                    self.arguments.open_json(name, out);
                    self.state = State::Json;
                } else {
                    self.arguments.open_string(name, out);
                    self.state = State::Text;
                }
                out.body(input.take(length));
            }
            (Marker::Maybe, _) | (_, Tag::Undecided) => {
                if tail == Tail::Ended {
                    out.body(input.take_all());
                }
                return Progress::Waits;
            }
            // To leave it out would run a call without an argument that the model gave.
            _ => self.state = State::Raw,
        }
        Progress::Made
    }

    fn read_raw(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Progress {
        let close = find_close(input.rest(), &self.markup.closing(CALL), tail);
        let (Close::At(length) | Close::Beyond(length)) = close;
        let text = input.take(length);
        out.body(text);
        out.arguments(text);
        if matches!(close, Close::Beyond(_)) {
            return Progress::Waits;
        }
        self.end_call(input, out);
        Progress::Made
    }

    fn end_call(&mut self, input: &mut Input, out: &mut Output<'_>) {
        out.markup(input.take(self.markup.closing(CALL).len()));
        self.end_arguments(out);
        out.closed(CallEnd::Complete);
        self.state = State::Between;
        self.list = self.list.after_call();
    }

    fn read_value(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Progress {
        let tag = self.markup.closing(ARGUMENT);
        let close = find_close(input.rest(), &tag, tail);
        let (Close::At(length) | Close::Beyond(length)) = close;
        let text = input.take(length);
        out.body(text);
        let is_json = self.state == State::Json;
        if is_json {
            self.arguments.json_piece(text, out);
        } else {
            self.arguments.piece(text, out);
        }
        if matches!(close, Close::Beyond(_)) {
            return Progress::Waits;
        }
        out.body(input.take(tag.len()));
        if !is_json {
            self.arguments.close_string(out);
        }
        self.state = State::Call;
        Progress::Made
    }

    fn end_arguments(&self, out: &mut Output<'_>) {
        if self.state == State::Text {
            self.arguments.close_string(out);
        }
        if self.state != State::Raw {
            self.arguments.end(out);
        }
    }

    pub(in crate::parser) fn cut(self, on_cut: OnCut, out: &mut Output<'_>) {
        if self.state == State::Between {
            return;
        }
        if on_cut == OnCut::Complete {
            self.end_arguments(out);
        }
        out.closed(on_cut.end());
    }
}
