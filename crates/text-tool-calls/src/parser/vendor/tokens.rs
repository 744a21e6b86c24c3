//! `TokenCalls`: calls between tokens of the model, of Kimi's models and of DeepSeek's earlier ones.

mod header;

use self::header::{Header, Tokens};
use super::list::{ListState, Progress};
use crate::parser::event::{CallEnd, Output};
use crate::parser::input::{Input, Tail};
use crate::parser::marker::{Close, Marker, find_close, marker_at};
use crate::parser::opening::Opening;
use crate::parser::settings::{OnCut, OnUnknownTool, ParserSettings};
use crate::tools::TextTools;

pub(in crate::parser) use self::header::{DEEPSEEK, KIMI};

/// The bytes from the beginning of a call to its arguments beyond which it is none.
const MAX_HEADER: usize = 256;

/// Calls between tokens of the model: a header with the name, then the arguments as JSON.
#[derive(Debug)]
pub(in crate::parser) struct TokenCalls {
    tokens: &'static Tokens,
    tools: TextTools,
    on_unknown: OnUnknownTool,
    max_header: usize,
    list: ListState,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Between,
    /// In the arguments, up to this marker.
    Arguments(&'static str),
}

impl TokenCalls {
    pub(in crate::parser) fn new(
        tokens: &'static Tokens,
        tools: &TextTools,
        settings: &ParserSettings,
    ) -> Self {
        Self {
            tokens,
            tools: tools.clone(),
            on_unknown: settings.on_unknown_tool.unwrap_or(OnUnknownTool::Call),
            max_header: settings.limits.undecided.min(MAX_HEADER),
            list: ListState::Before,
            state: State::Between,
        }
    }

    pub(in crate::parser) fn open(&self, text: &str) -> Opening {
        match (marker_at(text, self.tokens.section), marker_at(text, self.tokens.call)) {
            (Marker::Whole, _) | (_, Marker::Whole) => Opening::Yes,
            (Marker::Maybe, _) | (_, Marker::Maybe) => Opening::Undecided,
            (Marker::None, Marker::None) => Opening::No(1),
        }
    }

    /// Reads on. Returns whether the section has ended.
    pub(in crate::parser) fn read(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> bool {
        loop {
            let progress = match self.state {
                State::Between => self.read_between(input, tail, out),
                State::Arguments(end) => self.read_arguments(end, input, tail, out),
            };
            match progress {
                Progress::Made => {}
                Progress::Waits => return false,
                Progress::Ended => return true,
            }
        }
    }

    /// Reads markers up to the arguments of the next call.
    fn read_between(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Progress {
        if self.list == ListState::After {
            return Progress::Ended;
        }
        out.markup(input.take_space());
        let rest = input.rest();
        if rest.is_empty() {
            return Progress::Waits;
        }
        let Tokens { section, section_end, call, .. } = self.tokens;
        match [section, section_end, call].map(|token| marker_at(rest, token)) {
            [Marker::Whole, ..] => {
                self.list = ListState::List;
                out.markup(input.take(section.len()));
                Progress::Made
            }
            [_, Marker::Whole, _] => {
                out.markup(input.take(section_end.len()));
                Progress::Ended
            }
            [.., Marker::Whole] => self.read_header(input, tail, out),
            found if tail == Tail::Open && found.contains(&Marker::Maybe) => Progress::Waits,
            _ => Progress::Ended,
        }
    }

    /// Reads from the token that begins a call up to its arguments.
    fn read_header(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Progress {
        let rest = input.rest();
        let window = rest.get(..rest.floor_char_boundary(self.max_header)).unwrap_or_default();
        match self.tokens.header(window) {
            Header::Undecided if tail == Tail::Open && rest.len() < self.max_header => Progress::Waits,
            Header::Whole(call, length, end) if self.is_call(&call.name) => {
                out.opened(call);
                out.markup(input.take(length));
                self.state = State::Arguments(end);
                Progress::Made
            }
            Header::Undecided | Header::Whole(..) | Header::None => {
                out.text(input.take(self.tokens.call.len()));
                Progress::Ended
            }
        }
    }

    fn is_call(&self, name: &str) -> bool {
        self.on_unknown == OnUnknownTool::Call || self.tools.contains(name)
    }

    fn read_arguments(&mut self, end: &str, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Progress {
        let close = find_close(input.rest(), end, tail);
        let (Close::At(length) | Close::Beyond(length)) = close;
        let text = input.take(length);
        out.body(text);
        out.arguments(text);
        if matches!(close, Close::Beyond(_)) {
            return Progress::Waits;
        }
        out.markup(input.take(end.len()));
        out.closed(CallEnd::Complete);
        self.state = State::Between;
        self.list = self.list.after_call();
        Progress::Made
    }

    pub(in crate::parser) fn cut(self, on_cut: OnCut, out: &mut Output<'_>) {
        if self.state != State::Between {
            out.closed(on_cut.end());
        }
    }
}
