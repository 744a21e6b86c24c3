//! The syntaxes of calls as tables, and `Candidate`, which tells whether a text begins with one.

use advisor_core::{Text, ToolCall};
use serde_json::{Map, Value};

use super::event::OpenedCall;
use super::json;
use super::scan::{Found, MAX_SPACE, Scan, Tag, TagKind, Tail, is_name, marker_at, space_within};
use super::steps;
use super::value::ValueReader;
use crate::format::TextFormat;
use crate::tools::schema::leaf_value;
use crate::tools::{BodyText, TextTools, ToolForm};

/// A way to begin a call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Syntax {
    /// An element with an element per argument.
    Element(&'static Dialect),
    /// A JSON object, or a list of them.
    Json,
    /// `[[SEG_START {…}]]` and `[[SEG_END]]`.
    Sentinel,
    /// Tokens of a model around a name and the arguments as JSON.
    Tokens(&'static Tokens),
    /// A marker before a list of calls.
    Marker(&'static str),
    /// A marker behind a list of calls. Behind anything else it is text.
    EndMarker(&'static str),
}

/// The names of elements.
#[derive(Debug)]
pub(super) struct Dialect {
    pub(super) format: TextFormat,
    pub(super) call: &'static str,
    argument: &'static str,
}

/// The tokens of a model around a call.
#[derive(Debug)]
pub(crate) struct Tokens {
    format: TextFormat,
    pub(crate) call: &'static str,
    pub(crate) arguments: &'static str,
    pub(crate) call_end: &'static str,
    /// The end of a call whose name and arguments follow the word `function`, the arguments in a fence.
    fenced_end: Option<&'static str>,
}

const SENTINEL_START: &str = "[[SEG_START";
const SENTINEL_END: &str = "[[SEG_END]]";
const FENCE: &str = "\n```json\n";
/// The bytes from the beginning of a call between tokens to its arguments beyond which it is none.
const MAX_HEADER: usize = 256;

const XML: Dialect = Dialect { format: TextFormat::Xml, call: "tool", argument: "arg" };
const DSML: Dialect =
    Dialect { format: TextFormat::DeepSeek, call: "｜DSML｜invoke", argument: "｜DSML｜parameter" };

/// DeepSeek's tokens before DSML: V3.1 writes the name and the arguments, V3 and R1 write `function`, the name, and
/// the arguments in a fence.
pub(crate) const DEEPSEEK: Tokens = Tokens {
    format: TextFormat::DeepSeek,
    call: "<｜tool▁call▁begin｜>",
    arguments: "<｜tool▁sep｜>",
    call_end: "<｜tool▁call▁end｜>",
    fenced_end: Some("\n```<｜tool▁call▁end｜>"),
};
pub(crate) const KIMI: Tokens = Tokens {
    format: TextFormat::Kimi,
    call: "<|tool_call_begin|>",
    arguments: "<|tool_call_argument_begin|>",
    call_end: "<|tool_call_end|>",
    fenced_end: None,
};

impl TextFormat {
    /// Checks whether a call of this format can begin with this character.
    pub(super) fn begins_with(self, first: char) -> bool {
        match self {
            Self::Xml | Self::DeepSeek | Self::Kimi => first == '<',
            Self::Json => matches!(first, '{' | '['),
            Self::Sentinel => first == '[',
        }
    }

    /// Returns the ways in which a call of this format begins.
    pub(super) fn syntaxes(self) -> &'static [Syntax] {
        match self {
            Self::Xml => &[Syntax::Element(&XML)],
            Self::Json => &[Syntax::Json],
            Self::Sentinel => &[Syntax::Sentinel],
            Self::Kimi => &[
                Syntax::Marker("<|tool_calls_section_begin|>"),
                Syntax::EndMarker("<|tool_calls_section_end|>"),
                Syntax::Tokens(&KIMI),
            ],
            Self::DeepSeek => &[
                Syntax::Marker("<｜DSML｜function_calls>"),
                Syntax::EndMarker("</｜DSML｜function_calls>"),
                Syntax::Marker("<｜DSML｜tool_calls>"),
                Syntax::EndMarker("</｜DSML｜tool_calls>"),
                Syntax::Marker("<｜tool▁calls▁begin｜>"),
                Syntax::EndMarker("<｜tool▁calls▁end｜>"),
                Syntax::Element(&DSML),
                Syntax::Tokens(&DEEPSEEK),
            ],
        }
    }
}

impl Dialect {
    pub(super) fn closing_tag(&self) -> String {
        format!("</{}>", self.call)
    }

    /// Checks for a tag around the arguments, which has no meaning.
    pub(super) fn is_list_of_arguments(&self, tag: &Tag) -> bool {
        self.format == TextFormat::Xml
            && tag.kind != TagKind::Empty
            && tag.name.eq_ignore_ascii_case("arguments")
    }

    /// Returns the name of the argument that begins with this tag. In XML, any element can be one of its own name.
    pub(super) fn argument<'a>(&self, tag: &'a Tag) -> Option<&'a str> {
        let is_argument = is_name(&tag.name, self.argument);
        let name =
            tag.attribute("name").filter(|_| is_argument).map(str::trim).filter(|name| !name.is_empty());
        let own = Some(tag.name.as_str()).filter(|_| self.format == TextFormat::Xml);
        name.or(own).filter(|_| tag.kind != TagKind::Closing)
    }
}

/// Whether a text begins with a call.
pub(super) enum Opening {
    /// It depends on what follows.
    Undecided,
    /// This many bytes are text.
    No(usize),
    /// It is JSON without a call in it, up to its end.
    Data,
    /// A marker before or behind a list of calls, with its bytes.
    Marker(usize),
    Call(Box<Opened>),
}

/// The opening of a call.
pub(super) struct Opened {
    /// The call. `None`: the text for the user between markers, or JSON with calls in it.
    pub(super) call: Option<OpenedCall>,
    /// Its bytes.
    pub(super) length: usize,
    /// Arguments that the opening has, as they are written.
    pub(super) written: String,
    /// Arguments that the opening has.
    pub(super) members: Vec<(String, Value)>,
    pub(super) state: State,
}

/// What is next in a call.
pub(super) enum State {
    /// Text for the user, up to this marker.
    Text(&'static str),
    /// The arguments as they are, up to this marker.
    Raw(String),
    /// Text that is left out, up to this marker, since the arguments are known.
    Unused(&'static str),
    /// An element, or the end of the call.
    Elements(&'static Dialect, Scan),
    /// The value of an element.
    Value(&'static Dialect, ValueReader),
    /// The value of a short form; its end is that of the call.
    Body(ValueReader),
    /// JSON with calls in it.
    Json(Scan),
    Ended,
}

impl Opened {
    fn new(call: OpenedCall, length: usize, state: State) -> Self {
        Self { call: Some(call), length, written: String::new(), members: Vec::new(), state }
    }

    fn without_call(length: usize, state: State) -> Self {
        Self { call: None, length, written: String::new(), members: Vec::new(), state }
    }
}

/// A syntax that a text may begin with.
pub(super) struct Candidate {
    syntax: Syntax,
    scan: Scan,
}

impl Candidate {
    pub(super) fn new(syntax: Syntax) -> Self {
        Self { syntax, scan: Scan::default() }
    }

    /// Looks at the text from its first character on. Each look must begin with the same bytes.
    pub(super) fn open(&mut self, text: &str, tail: Tail, tools: &TextTools) -> Opening {
        let (Ok(opening) | Err(opening)) = match self.syntax {
            Syntax::Element(dialect) => Ok(self.element(dialect, text, tools)),
            Syntax::Json => Ok(self.json(text, tail, tools)),
            Syntax::Sentinel => self.sentinel(text, tail, tools),
            Syntax::Tokens(tokens) => tokens.open(text, tail),
            Syntax::Marker(marker) | Syntax::EndMarker(marker) => {
                found(marker_at(text, marker, tail), 1).map(Opening::Marker)
            }
        };
        match opening {
            Opening::Undecided if tail == Tail::Ended => Opening::No(1),
            opening => opening,
        }
    }

    fn element(&mut self, dialect: &'static Dialect, text: &str, tools: &TextTools) -> Opening {
        let is_xml = dialect.format == TextFormat::Xml;
        let forms = tools.forms().iter().filter(|_| is_xml).map(|form| form.tool.as_str());
        if !forms.chain([dialect.call]).any(|element| may_begin_with(text, element)) {
            return Opening::No(1);
        }
        let length = match self.scan.tag(text) {
            Found::Undecided => return Opening::Undecided,
            Found::None(length) => return Opening::No(length),
            Found::Whole(length) => length,
        };
        let tag = text.get(..length).and_then(Tag::read).filter(|tag| tag.kind != TagKind::Closing);
        let opened = tag.and_then(|tag| match is_name(&tag.name, dialect.call) {
            true => element_of_tool(dialect, &tag, length, tools),
            false => short_form(&tag, length, tools),
        });
        opened.map_or(Opening::No(length), |opened| Opening::Call(Box::new(opened)))
    }

    fn json(&mut self, text: &str, tail: Tail, tools: &TextTools) -> Opening {
        if let Some(decided) = decided_by_head(text) {
            return decided;
        }
        let end = self.scan.json(text);
        if end.is_none() && tail == Tail::Open {
            return Opening::Undecided;
        }
        let json = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
        if json::calls(json, tools).is_empty() {
            return end.map_or(Opening::Data, Opening::No);
        }
        Opening::Call(Box::new(Opened::without_call(0, State::Json(Scan::default()))))
    }

    fn sentinel(&mut self, text: &str, tail: Tail, tools: &TextTools) -> Result<Opening, Opening> {
        found(marker_at(text, SENTINEL_START, tail), 1)?;
        let header = text.get(SENTINEL_START.len()..).unwrap_or_default();
        let length = found(self.scan.strict_json(header), SENTINEL_START.len())?;
        let (header, after) = header.split_at_checked(length).unwrap_or_default();
        let space = space_within(after, MAX_SPACE);
        let end = marker_at(after.get(space..).unwrap_or_default(), "]]", tail);
        found(end, SENTINEL_START.len())?;
        let length = SENTINEL_START.len() + length + space + 2;
        let members = serde_json::from_str(header).unwrap_or_default();
        let opened = opened_by_header(members, length, tools);
        Ok(opened.map_or(Opening::No(length), |opened| Opening::Call(Box::new(opened))))
    }
}

/// Returns the bytes of what was found, or what the text begins with otherwise: it is undecided, or so many bytes are text.
fn found(found: Found, text: usize) -> Result<usize, Opening> {
    match found {
        Found::Whole(length) => Ok(length),
        Found::Undecided => Err(Opening::Undecided),
        Found::None(_) => Err(Opening::No(text)),
    }
}

/// Checks whether a text that begins with `<` may go on with the name of this element.
fn may_begin_with(text: &str, element: &str) -> bool {
    let text = text.get(1..).unwrap_or_default();
    match marker_at(text, element, Tail::Open) {
        Found::Undecided => true,
        Found::Whole(length) => {
            let next = text.get(length..).unwrap_or_default().chars().next();
            next.is_none_or(|next| next.is_whitespace() || matches!(next, '>' | '/'))
        }
        Found::None(_) => false,
    }
}

/// Returns the call of an element with the name of a tool in it. An unknown tool counts, too: the tool loop answers
/// with an error that the model reads.
fn element_of_tool(dialect: &'static Dialect, tag: &Tag, length: usize, tools: &TextTools) -> Option<Opened> {
    let name = tag.attribute("name").map(str::trim);
    let name = match dialect.format {
        TextFormat::Xml => name.filter(|name| !name.is_empty())?,
        _ => or_unnamed(name?),
    };
    let call = OpenedCall { name: name.into(), id: None, format: dialect.format };
    let state = match tag.kind {
        TagKind::Empty => State::Ended,
        _ => State::Elements(dialect, Scan::default()),
    };
    let others = tag.attributes.iter().filter(|(attribute, _)| !attribute.eq_ignore_ascii_case("name"));
    let members = others.filter_map(|(attribute, value)| member_of(attribute, value, name, tools)).collect();
    Some(Opened { members, ..Opened::new(call, length, state) })
}

/// Returns the call of an element that is the short form of a tool, if it has all that it needs.
fn short_form(tag: &Tag, length: usize, tools: &TextTools) -> Option<Opened> {
    let form = tools.form_of_element(&tag.name)?;
    let has = |argument: &Text| {
        tag.attributes.iter().any(|(name, value)| **argument == **name && !value.is_empty())
    };
    if !form.required.iter().all(has) {
        return None;
    }
    let call = OpenedCall { name: form.tool.clone(), id: None, format: TextFormat::Xml };
    let state = match tag.kind {
        TagKind::Empty => State::Ended,
        _ => State::Body(ValueReader::body(&form.body, format!("</{}>", form.tool), &form.body_text)),
    };
    let attributes = tag.attributes.iter();
    let members = attributes.filter_map(|(name, value)| member_of(name, value, &form.tool, tools)).collect();
    Some(Opened { members, ..Opened::new(call, length, state) })
}

/// Returns an attribute as an argument, if the tool has it.
fn member_of(name: &str, value: &str, tool: &str, tools: &TextTools) -> Option<(String, Value)> {
    let schema = tools.schema(tool);
    schema.has_property(name).then(|| (name.to_owned(), leaf_value(value, schema.property(name))))
}

/// Returns what a start marker with these members begins.
fn opened_by_header(members: Map<String, Value>, length: usize, tools: &TextTools) -> Option<Opened> {
    let text = |key: &str| members.get(key).and_then(Value::as_str);
    let id = text("id").filter(|id| !id.is_empty()).map(Text::from);
    let call = |name: &str| OpenedCall { name: name.into(), id: id.clone(), format: TextFormat::Sentinel };
    let kind = text("type")?.trim().to_ascii_lowercase();
    match kind.as_str() {
        "text" => Some(Opened::without_call(length, State::Text(SENTINEL_END))),
        "tool" | "tool_call" => {
            let mut names = ["tool_name", "name", "function"].into_iter().filter_map(text);
            let call = call(names.find(|name| !name.is_empty())?);
            let (written, state) = match members.get("arguments") {
                Some(Value::String(arguments)) => (arguments.clone(), State::Unused(SENTINEL_END)),
                Some(arguments) => (arguments.to_string(), State::Unused(SENTINEL_END)),
                None => (String::new(), State::Raw(SENTINEL_END.to_owned())),
            };
            Some(Opened { written, ..Opened::new(call, length, state) })
        }
        kind => {
            let form = tools.form_of_element(kind)?;
            let has = |argument: &Text| members.get(argument.as_str()).is_some_and(|value| *value != "");
            let call = form.required.iter().all(has).then(|| call(&form.tool))?;
            let state = State::Body(body_between_sentinels(form));
            let arguments =
                members.into_iter().filter(|(name, _)| tools.schema(&form.tool).has_property(name));
            Some(Opened { members: arguments.collect(), ..Opened::new(call, length, state) })
        }
    }
}

/// Between sentinels, there are no entities to decode, so the text is read unchanged.
fn body_between_sentinels(form: &ToolForm) -> ValueReader {
    let text = match &form.body_text {
        BodyText::Value => &BodyText::Verbatim(None),
        verbatim => verbatim,
    };
    ValueReader::body(&form.body, SENTINEL_END.to_owned(), text)
}

impl Tokens {
    /// Looks for the token of a call, a name or an id, and the token before the arguments.
    ///
    /// Names and ids have no `<`, so looks at many tokens do not overlap.
    fn open(&self, text: &str, tail: Tail) -> Result<Opening, Opening> {
        let begin = found(marker_at(text, self.call, tail), 1)?;
        let window = text.get(..text.floor_char_boundary(MAX_HEADER)).unwrap_or_default();
        let undecided = if window.len() < text.len() { Opening::No(begin) } else { Opening::Undecided };
        let after = window.get(begin..).unwrap_or_default();
        let end = after.find('<');
        steps::count(end.unwrap_or(after.len()));
        let Some((id, token)) = end.and_then(|end| after.split_at_checked(end)) else {
            return Err(undecided);
        };
        let length = match marker_at(token, self.arguments, tail) {
            Found::Whole(length) => begin + id.len() + length,
            Found::Undecided => return Err(undecided),
            Found::None(_) => return Err(Opening::No(begin)),
        };
        let id = id.trim();
        let opened = |name: &str, length, end: &str| {
            let name = Text::from(or_unnamed(name));
            let id = Some(id).filter(|id| self.format == TextFormat::Kimi && !id.is_empty()).map(Text::from);
            let call = OpenedCall { name, id, format: self.format };
            Ok(Opening::Call(Box::new(Opened::new(call, length, State::Raw(end.to_owned())))))
        };
        let Some(fenced_end) = self.fenced_end.filter(|_| id == "function") else {
            return opened(name_in(id), length, self.call_end);
        };
        let rest = window.get(length..).unwrap_or_default();
        let Some((name, fence)) = rest.find(['\n', '{', '<']).and_then(|end| rest.split_at_checked(end))
        else {
            return Err(undecided);
        };
        match marker_at(fence, FENCE, tail) {
            Found::Whole(fence) => opened(name, length + name.len() + fence, fenced_end),
            Found::Undecided => Err(undecided),
            Found::None(_) => opened(id, length, self.call_end),
        }
    }
}

/// Returns the name of the tool in an id such as `functions.weather:0`.
fn name_in(id: &str) -> &str {
    let name = id.strip_prefix("functions.").unwrap_or(id);
    match name.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => name,
    }
}

fn or_unnamed(name: &str) -> &str {
    if name.trim().is_empty() { ToolCall::UNNAMED } else { name.trim() }
}

/// Looks at the first key of a text that begins with a bracket. Returns `None` if there may be calls in it.
fn decided_by_head(text: &str) -> Option<Opening> {
    let window = text.get(..text.floor_char_boundary(json::MAX_HEAD)).unwrap_or_default();
    let is_full = window.len() < text.len();
    // No object, and no list of objects.
    let other = |rest: &str| if rest.is_empty() && !is_full { Opening::Undecided } else { Opening::No(1) };
    let object = json::without_space(window.strip_prefix('[').unwrap_or(window));
    let Some(members) = object.strip_prefix('{').map(json::without_space) else { return Some(other(object)) };
    let Some(key) = members.strip_prefix('"') else { return Some(other(members)) };
    steps::count(key.len());
    match key.split_once('"').map(|(key, _)| json::Key::from(key)) {
        None if !is_full => Some(Opening::Undecided),
        None | Some(json::Key::Unknown) => Some(Opening::Data),
        Some(_) => None,
    }
}
