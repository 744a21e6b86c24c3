use advisor_core::ToolCall;

use crate::parser::event::{CallEnd, OpenedCall, Output};
use crate::parser::format::TextFormat;
use crate::parser::input::{Input, Tail};
use crate::parser::limits::ParserLimits;
use crate::parser::marker::{Close, Marker, find_close, marker_at};
use crate::parser::opening::Opening;
use crate::parser::settings::OnCut;

const SECTION: &str = "<|tool_calls_section_begin|>";
const SECTION_END: &str = "<|tool_calls_section_end|>";
const CALL: &str = "<|tool_call_begin|>";
const ARGUMENTS: &str = "<|tool_call_argument_begin|>";
const CALL_END: &str = "<|tool_call_end|>";

/// Calls in the markup of Kimi's models: an id such as `functions.weather:0`, then the arguments as JSON.
#[derive(Debug)]
pub(in crate::parser) struct KimiCalls {
    max_header: usize,
    list: ListState,
    state: State,
}

/// The state of the list of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListState {
    /// Before the first call, without a list.
    Before,
    /// In a list of calls.
    List,
    /// After a call that was not in a list.
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Between,
    Arguments,
}

impl KimiCalls {
    pub(in crate::parser) fn new(limits: ParserLimits) -> Self {
        Self { max_header: limits.undecided, list: ListState::Before, state: State::Between }
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
            let goes_on = match self.state {
                State::Between => match self.read_between(input, tail, out) {
                    Some(goes_on) => goes_on,
                    None => return true,
                },
                State::Arguments => self.read_arguments(input, tail, out),
            };
            if !goes_on {
                return false;
            }
        }
    }

    /// Reads markers up to the arguments of the next call. Returns `None` at the end of the section, else whether
    /// there may be more to read.
    fn read_between(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Option<bool> {
        if self.list == ListState::After {
            return None;
        }
        out.markup(input.take_space());
        let rest = input.rest();
        if rest.is_empty() {
            return Some(false);
        }
        let markers = [SECTION, SECTION_END, CALL].map(|marker| (marker_at(rest, marker), marker));
        match markers.iter().find(|(found, _)| *found == Marker::Whole) {
            Some((_, SECTION)) => {
                self.list = ListState::List;
                out.markup(input.take(SECTION.len()));
            }
            Some((_, SECTION_END)) => {
                out.markup(input.take(SECTION_END.len()));
                return None;
            }
            Some(_) => return self.read_header(input, tail, out),
            None if tail == Tail::Open && markers.iter().any(|(found, _)| *found == Marker::Maybe) => {
                return Some(false);
            }
            None => return None,
        }
        Some(true)
    }

    /// Reads from the marker that begins a call up to its arguments.
    fn read_header(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Option<bool> {
        let Some((header, _)) = input.window(self.max_header).split_once(ARGUMENTS) else {
            if tail == Tail::Open && input.rest().len() < self.max_header {
                return Some(false);
            }
            // No name follows: the marker alone is no call.
            out.text(input.take(CALL.len()));
            return None;
        };
        let length = header.len() + ARGUMENTS.len();
        let id = header.get(CALL.len()..).unwrap_or_default().trim();
        let opened = OpenedCall::new(TextFormat::Kimi, name_in(id));
        out.opened(opened.with_id(id));
        out.markup(input.take(length));
        self.state = State::Arguments;
        Some(true)
    }

    fn read_arguments(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> bool {
        let close = find_close(input.rest(), CALL_END, tail);
        let (Close::At(length) | Close::Beyond(length)) = close;
        let text = input.take(length);
        out.body(text);
        out.arguments(text);
        let ended = matches!(close, Close::At(_));
        if ended {
            out.markup(input.take(CALL_END.len()));
            out.closed(CallEnd::Complete);
            self.state = State::Between;
            self.list = if self.list == ListState::List { ListState::List } else { ListState::After };
        }
        ended
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
    if name.is_empty() { ToolCall::UNNAMED } else { name }
}
