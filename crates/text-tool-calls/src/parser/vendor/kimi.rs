use advisor_core::ToolCall;

use super::list::{ListState, Progress};
use crate::parser::event::{CallEnd, OpenedCall, Output};
use crate::parser::format::TextFormat;
use crate::parser::input::{Input, Tail};
use crate::parser::marker::{Close, Marker, find_close, marker_at};
use crate::parser::opening::Opening;
use crate::parser::settings::{OnCut, OnUnknownTool, ParserSettings};
use crate::parser::steps;
use crate::tools::TextTools;

const SECTION: &str = "<|tool_calls_section_begin|>";
const SECTION_END: &str = "<|tool_calls_section_end|>";
const CALL: &str = "<|tool_call_begin|>";
const ARGUMENTS: &str = "<|tool_call_argument_begin|>";
const CALL_END: &str = "<|tool_call_end|>";
/// The bytes from the beginning of a call to its arguments beyond which it is none.
const MAX_HEADER: usize = 256;

/// Calls in the markup of Kimi's models: an id such as `functions.weather:0`, then the arguments as JSON.
#[derive(Debug)]
pub(in crate::parser) struct KimiCalls {
    tools: TextTools,
    on_unknown: OnUnknownTool,
    max_header: usize,
    list: ListState,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Between,
    Arguments,
}

/// The text from the marker that begins a call to its arguments.
enum Header {
    /// Depends on what follows.
    Undecided,
    /// It is no call.
    None,
    /// The id of the call, and the bytes of the header.
    Whole(String, usize),
}

impl KimiCalls {
    pub(in crate::parser) fn new(tools: &TextTools, settings: &ParserSettings) -> Self {
        Self {
            tools: tools.clone(),
            on_unknown: settings.on_unknown_tool.unwrap_or(OnUnknownTool::Call),
            max_header: settings.limits.undecided.min(MAX_HEADER),
            list: ListState::Before,
            state: State::Between,
        }
    }

    pub(in crate::parser) fn open(&self, text: &str) -> Opening {
        match (marker_at(text, SECTION), marker_at(text, CALL)) {
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
                State::Arguments => self.read_arguments(input, tail, out),
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
        let markers = [SECTION, SECTION_END, CALL].map(|marker| (marker_at(rest, marker), marker));
        match markers.iter().find(|(found, _)| *found == Marker::Whole) {
            Some((_, SECTION)) => {
                self.list = ListState::List;
                out.markup(input.take(SECTION.len()));
                Progress::Made
            }
            Some((_, SECTION_END)) => {
                out.markup(input.take(SECTION_END.len()));
                Progress::Ended
            }
            Some(_) => self.read_header(input, tail, out),
            None if tail == Tail::Open && markers.iter().any(|(found, _)| *found == Marker::Maybe) => {
                Progress::Waits
            }
            None => Progress::Ended,
        }
    }

    /// Reads from the marker that begins a call up to its arguments.
    fn read_header(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Progress {
        match self.header(input.rest(), tail) {
            Header::Undecided => Progress::Waits,
            Header::None => {
                out.text(input.take(CALL.len()));
                Progress::Ended
            }
            Header::Whole(id, length) => {
                let opened = OpenedCall::new(TextFormat::Kimi, name_in(&id));
                out.opened(opened.with_id(id));
                out.markup(input.take(length));
                self.state = State::Arguments;
                Progress::Made
            }
        }
    }

    /// Looks at a text that begins with [`CALL`]. An id has no `<`, so scans of many markers do not overlap.
    fn header(&self, text: &str, tail: Tail) -> Header {
        let window = text.get(..text.floor_char_boundary(self.max_header)).unwrap_or_default();
        let is_open = tail == Tail::Open && text.len() < self.max_header;
        let after = window.get(CALL.len()..).unwrap_or_default();
        let end = after.find('<');
        steps::count(end.unwrap_or(after.len()));
        let Some((id, marker)) = end.and_then(|end| after.split_at_checked(end)) else {
            return if is_open { Header::Undecided } else { Header::None };
        };
        match marker_at(marker, ARGUMENTS) {
            Marker::Whole if self.is_call(id.trim()) => {
                Header::Whole(id.trim().to_owned(), CALL.len() + id.len() + ARGUMENTS.len())
            }
            Marker::Maybe if is_open => Header::Undecided,
            Marker::Whole | Marker::Maybe | Marker::None => Header::None,
        }
    }

    fn is_call(&self, id: &str) -> bool {
        self.on_unknown == OnUnknownTool::Call || self.tools.contains(name_in(id))
    }

    fn read_arguments(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Progress {
        let close = find_close(input.rest(), CALL_END, tail);
        let (Close::At(length) | Close::Beyond(length)) = close;
        let text = input.take(length);
        out.body(text);
        out.arguments(text);
        if matches!(close, Close::Beyond(_)) {
            return Progress::Waits;
        }
        out.markup(input.take(CALL_END.len()));
        out.closed(CallEnd::Complete);
        self.state = State::Between;
        self.list = self.list.after_call();
        Progress::Made
    }

    pub(in crate::parser) fn cut(self, on_cut: OnCut, out: &mut Output<'_>) {
        if self.state == State::Arguments {
            out.closed(on_cut.end());
        }
    }
}

/// Returns the name of the tool in an id such as `functions.weather:0`.
fn name_in(id: &str) -> &str {
    let name = id.strip_prefix("functions.").unwrap_or(id);
    let name = match name.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => name,
    };
    if name.trim().is_empty() { ToolCall::UNNAMED } else { name.trim() }
}
