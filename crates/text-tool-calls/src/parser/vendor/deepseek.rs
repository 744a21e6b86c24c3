use advisor_core::ToolCall;

use crate::parser::event::{CallEnd, OpenedCall, Output};
use crate::parser::format::TextFormat;
use crate::parser::input::{Input, Tail};
use crate::parser::limits::ParserLimits;
use crate::parser::marker::{Close, Marker, find_close, marker_at};
use crate::parser::markup::tag::attributes;
use crate::parser::opening::Opening;
use crate::parser::settings::OnCut;
use crate::parser::value::arguments::ArgumentsWriter;

/// The bars around `DSML`: those of the model's own tokens, and those that some servers write.
const BARS: [&str; 2] = ["\u{ff5c}", "|"];
const LISTS: [&str; 2] = ["function_calls>", "tool_calls>"];

/// Calls in the markup of DeepSeek's models: `<｜DSML｜invoke name="…">` with an element per parameter.
#[derive(Debug)]
pub(in crate::parser) struct DeepSeekCalls {
    max_tag: usize,
    /// The beginnings of an opening and of a closing tag.
    open: String,
    close: String,
    arguments: ArgumentsWriter,
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
    /// In a call, between its parameters.
    Call,
    /// In a parameter that is a string.
    Text,
    /// In a parameter that is JSON.
    Json,
}

impl DeepSeekCalls {
    pub(in crate::parser) fn new(limits: ParserLimits) -> Self {
        Self {
            max_tag: limits.undecided,
            open: String::new(),
            close: String::new(),
            arguments: ArgumentsWriter::default(),
            list: ListState::Before,
            state: State::Between,
        }
    }

    pub(in crate::parser) fn open(&mut self, text: &str) -> Opening {
        let mut undecided = false;
        for bar in BARS {
            self.open = format!("<{bar}DSML{bar}");
            self.close = format!("</{bar}DSML{bar}");
            for list in LISTS {
                match marker_at(text, &format!("{}{list}", self.open)) {
                    Marker::Whole => return Opening::Yes,
                    Marker::Maybe => undecided = true,
                    Marker::None => {}
                }
            }
            // Without a list, the whole tag of a call is needed: a broken one is no call.
            match self.tag("invoke ", text, Tail::Open) {
                Tag::Whole(..) => return Opening::Yes,
                Tag::Undecided => undecided = true,
                Tag::None => {}
            }
        }
        if undecided { Opening::Undecided } else { Opening::No(1) }
    }

    /// Reads on. Returns whether the calls have ended.
    pub(in crate::parser) fn read(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> bool {
        loop {
            let goes_on = match self.state {
                State::Between => match self.read_between(input, tail, out) {
                    Some(goes_on) => goes_on,
                    None => return true,
                },
                State::Call => self.read_call(input, tail, out),
                State::Text | State::Json => self.read_value(input, tail, out),
            };
            if !goes_on {
                return false;
            }
        }
    }

    fn read_between(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Option<bool> {
        if self.list == ListState::After {
            return None;
        }
        out.markup(input.take_space());
        let rest = input.rest();
        if rest.is_empty() {
            return Some(false);
        }
        match self.list_tag(rest) {
            ListTag::Whole(length, ends) => {
                out.markup(input.take(length));
                self.list = ListState::List;
                return (!ends).then_some(true);
            }
            ListTag::Maybe if tail == Tail::Open => return Some(false),
            ListTag::Maybe | ListTag::None => {}
        }
        match self.tag("invoke ", rest, tail) {
            Tag::Whole(attributes, length) => {
                let name = attribute(&attributes, "name").filter(|name| !name.is_empty());
                out.opened(OpenedCall::new(TextFormat::DeepSeek, name.unwrap_or(ToolCall::UNNAMED)));
                out.markup(input.take(length));
                self.arguments = ArgumentsWriter::default();
                self.state = State::Call;
                Some(true)
            }
            Tag::Undecided => Some(false),
            Tag::None => None,
        }
    }

    /// Looks for the opening or the closing tag of a list.
    fn list_tag(&self, text: &str) -> ListTag {
        let mut found = ListTag::None;
        for (prefix, ends) in [(&self.open, false), (&self.close, true)] {
            for list in LISTS {
                match marker_at(text, &format!("{prefix}{list}")) {
                    Marker::Whole => return ListTag::Whole(prefix.len() + list.len(), ends),
                    Marker::Maybe => found = ListTag::Maybe,
                    Marker::None => {}
                }
            }
        }
        found
    }

    fn read_call(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> bool {
        let close = format!("{}invoke>", self.close);
        let rest = input.rest();
        let length = match (marker_at(rest, &close), self.tag("parameter ", rest, tail)) {
            _ if rest.is_empty() => return false,
            (Marker::Whole, _) => {
                out.markup(input.take(close.len()));
                self.arguments.end(out);
                out.closed(CallEnd::Complete);
                self.state = State::Between;
                self.list = if self.list == ListState::List { ListState::List } else { ListState::After };
                return true;
            }
            (_, Tag::Whole(attributes, length)) => {
                let name = attribute(&attributes, "name").unwrap_or_default();
                if attribute(&attributes, "string") == Some("false") {
                    self.arguments.open_json(name, out);
                    self.state = State::Json;
                } else {
                    self.arguments.open_string(name, out);
                    self.state = State::Text;
                }
                length
            }
            (Marker::Maybe, _) | (_, Tag::Undecided) if tail == Tail::Open => return false,
            _ => rest.chars().next().map_or(0, char::len_utf8),
        };
        out.body(input.take(length));
        true
    }

    fn read_value(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> bool {
        let tag = format!("{}parameter>", self.close);
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
            return false;
        }
        out.body(input.take(tag.len()));
        if !is_json {
            self.arguments.close_string(out);
        }
        self.state = State::Call;
        true
    }

    /// Looks for an opening tag of this name.
    fn tag(&self, name: &str, text: &str, tail: Tail) -> Tag {
        let begin = format!("{}{name}", self.open);
        match marker_at(text, &begin) {
            Marker::Whole => {}
            Marker::Maybe if tail == Tail::Open => return Tag::Undecided,
            Marker::Maybe | Marker::None => return Tag::None,
        }
        let window = text.get(..text.floor_char_boundary(self.max_tag)).unwrap_or_default();
        match window.find('>') {
            Some(end) => {
                let inside = text.get(begin.len() - 1..end).unwrap_or_default();
                attributes(inside).map_or(Tag::None, |attributes| Tag::Whole(attributes, end + 1))
            }
            None if tail == Tail::Open && text.len() < self.max_tag => Tag::Undecided,
            None => Tag::None,
        }
    }

    pub(in crate::parser) fn cut(self, on_cut: OnCut, out: &mut Output<'_>) {
        if self.state == State::Between {
            return;
        }
        if on_cut == OnCut::Complete {
            if self.state == State::Text {
                self.arguments.close_string(out);
            }
            self.arguments.end(out);
        }
        out.closed(on_cut.end());
    }
}

enum ListTag {
    /// Its length, and whether it closes the list.
    Whole(usize, bool),
    /// Perhaps, depending on what follows.
    Maybe,
    None,
}

enum Tag {
    None,
    Undecided,
    /// Its attributes and its length.
    Whole(Vec<(String, String)>, usize),
}

fn attribute<'a>(attributes: &'a [(String, String)], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}
