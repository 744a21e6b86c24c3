//! `SentinelCall`: a call between markers with a header.

mod header;

use serde_json::{Map, Value};

use self::header::{HeaderScan, Scanned};
use super::event::{CallEnd, OpenedCall, Output};
use super::format::TextFormat;
use super::input::{Input, Tail};
use super::marker::{Close, Marker, find_close, marker_at};
use super::opening::Opening;
use super::settings::{OnCut, OnUnknownTool, ParserSettings};
use super::value::ValueReader;
use super::value::arguments::ArgumentsWriter;
use super::value::nested::arguments_in;
use super::value::trimmed::Entities;
use crate::tools::{TextTools, ToolForm};

const START: &str = "[[SEG_START";
const END: &str = "[[SEG_END]]";

/// A call, or a text, between `[[SEG_START {…}]]` and `[[SEG_END]]`.
#[derive(Debug)]
pub(super) struct SentinelCall {
    tools: TextTools,
    on_unknown: OnUnknownTool,
    scan: HeaderScan,
    header: Header,
    arguments: ArgumentsWriter,
    state: State,
}

/// The meaning of a start marker.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Header {
    Text,
    /// A call of this tool.
    Tool(String),
}

#[derive(Debug)]
enum State {
    /// The bytes of the complete start marker, and its members.
    Opening(usize, Map<String, Value>),
    Text,
    /// Before the first character of the arguments.
    Arguments,
    /// Arguments as JSON.
    Json,
    /// Arguments as elements.
    Elements(String),
    /// A body that the header replaces.
    Unused,
    /// The text of a short form, and the argument that replaces an empty one.
    Value(ValueReader, String),
    Ended,
}

impl SentinelCall {
    pub(super) fn new(tools: &TextTools, settings: &ParserSettings) -> Self {
        Self {
            tools: tools.clone(),
            on_unknown: settings.on_unknown_tool.unwrap_or(OnUnknownTool::Call),
            scan: HeaderScan::default(),
            header: Header::Text,
            arguments: ArgumentsWriter::default(),
            state: State::Ended,
        }
    }

    pub(super) fn open(&mut self, text: &str) -> Opening {
        match marker_at(text, START) {
            Marker::Whole => {}
            Marker::Maybe => return Opening::Undecided,
            Marker::None => return Opening::No(1),
        }
        let after = text.get(START.len()..).unwrap_or_default();
        let (object, length) = match self.scan.scan(after) {
            Scanned::Undecided => return Opening::Undecided,
            Scanned::None => return Opening::No(START.len()),
            Scanned::Whole(object, length) => (object, START.len() + length),
        };
        let members = serde_json::from_str(after.get(object).unwrap_or_default()).unwrap_or_default();
        let Some(header) = self.header_of(&members) else { return Opening::No(length) };
        (self.header, self.state) = (header, State::Opening(length, members));
        Opening::Yes
    }

    /// Returns the meaning of a start marker with these members, or `None` if it is unknown.
    fn header_of(&self, members: &Map<String, Value>) -> Option<Header> {
        let kind = members.get("type")?.as_str()?.trim().to_ascii_lowercase();
        match kind.as_str() {
            "text" => Some(Header::Text),
            "tool" | "tool_call" => {
                let names = ["tool_name", "name", "function"];
                let name = names
                    .iter()
                    .find_map(|key| members.get(*key)?.as_str())
                    .filter(|name| !name.is_empty())?;
                let is_call = self.on_unknown == OnUnknownTool::Call || self.tools.contains(name);
                is_call.then(|| Header::Tool(name.to_owned()))
            }
            kind => {
                let form = self.form_of(kind)?;
                let has = |argument: &str| {
                    members.iter().any(|(key, value)| form.argument(key) == Some(argument) && *value != "")
                };
                let is_call = form.required.iter().all(|argument| has(argument));
                is_call.then(|| Header::Tool(form.tool.to_string()))
            }
        }
    }

    fn form_of(&self, kind: &str) -> Option<&ToolForm> {
        self.tools.form_of_element(if kind == "run_terminal_cmd" { "run_bash" } else { kind })
    }

    /// Reads on. Returns whether the call has ended.
    pub(super) fn read(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> bool {
        loop {
            let ended = match &mut self.state {
                State::Opening(length, members) => {
                    let (length, members) = (*length, std::mem::take(members));
                    self.state = self.read_opening(length, &members, input, out);
                    continue;
                }
                State::Arguments => {
                    out.body(input.take_space());
                    let rest = input.rest();
                    let is_undecided = marker_at(rest, END) == Marker::Maybe && tail == Tail::Open;
                    if rest.is_empty() || is_undecided {
                        return false;
                    }
                    let is_xml = rest.starts_with('<');
                    self.state = if is_xml { State::Elements(String::new()) } else { State::Json };
                    continue;
                }
                State::Text => read_until_end(input, tail, |text| out.text(text)),
                State::Unused => read_until_end(input, tail, |text| out.body(text)),
                State::Json => read_until_end(input, tail, |text| {
                    out.body(text);
                    out.arguments(text);
                }),
                State::Elements(elements) => read_until_end(input, tail, |text| {
                    out.body(text);
                    elements.push_str(text);
                }),
                State::Value(reader, _) => reader.read(input, tail, &mut self.arguments, out),
                State::Ended => return true,
            };
            if !ended {
                return false;
            }
            self.read_end(input, out);
        }
    }

    fn read_end(&mut self, input: &mut Input, out: &mut Output<'_>) {
        out.markup(input.take(END.len()));
        if matches!(self.header, Header::Tool(_)) {
            self.end_arguments(out);
            out.closed(CallEnd::Complete);
        }
        self.state = State::Ended;
    }

    fn read_opening(
        &mut self,
        length: usize,
        members: &Map<String, Value>,
        input: &mut Input,
        out: &mut Output<'_>,
    ) -> State {
        let Header::Tool(tool) = self.header.clone() else {
            out.markup(input.take(length));
            return State::Text;
        };
        let opened = OpenedCall::new(TextFormat::Sentinel, tool.as_str());
        let id = members.get("id").and_then(Value::as_str).unwrap_or_default();
        out.opened(opened.with_id(id));
        out.markup(input.take(length));
        let is_tool =
            matches!(members.get("type").and_then(Value::as_str).map(str::trim), Some("tool" | "tool_call"));
        match self.tools.form(&tool).filter(|_| !is_tool).cloned() {
            Some(form) => self.begin_form(&form, members, out),
            None => match members.get("arguments") {
                Some(Value::String(arguments)) => {
                    out.arguments(arguments);
                    State::Unused
                }
                Some(arguments) => {
                    out.arguments(&arguments.to_string());
                    State::Unused
                }
                None => State::Arguments,
            },
        }
    }

    fn begin_form(&mut self, form: &ToolForm, members: &Map<String, Value>, out: &mut Output<'_>) -> State {
        for (key, value) in members {
            if let Some(argument) = form.argument(key).filter(|argument| form.body != **argument)
                && self.tools.has_argument(&form.tool, argument)
            {
                self.arguments.member(argument, value, out);
            }
        }
        let texts = members.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
        let fallback = form.body_among(texts);
        let reader = ValueReader::for_form(form, END.to_owned(), Entities::Kept);
        reader.begin(&mut self.arguments, out);
        State::Value(reader, fallback)
    }

    /// Emits the rest of the arguments.
    fn end_arguments(&mut self, out: &mut Output<'_>) {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Value(reader, fallback) => {
                if self.arguments.string_is_empty() {
                    self.arguments.piece(&fallback, out);
                }
                reader.end(&mut self.arguments, out);
                self.arguments.end(out);
            }
            State::Elements(elements) => {
                let arguments = match &self.header {
                    Header::Tool(tool) => arguments_in(&elements, self.tools.schema(tool)),
                    Header::Text => None,
                };
                out.arguments(&arguments.map_or(elements, |arguments| arguments.to_string()));
            }
            _ => {}
        }
    }

    pub(super) fn cut(mut self, on_cut: OnCut, out: &mut Output<'_>) {
        if matches!(self.header, Header::Tool(_)) && !matches!(self.state, State::Ended) {
            if on_cut == OnCut::Complete {
                self.end_arguments(out);
            }
            out.closed(on_cut.end());
        }
    }
}

/// Passes text on up to the end marker. Returns whether the marker is next.
fn read_until_end(input: &mut Input, tail: Tail, mut emit: impl FnMut(&str)) -> bool {
    let close = find_close(input.rest(), END, tail);
    let (Close::At(length) | Close::Beyond(length)) = close;
    emit(input.take(length));
    matches!(close, Close::At(_))
}
