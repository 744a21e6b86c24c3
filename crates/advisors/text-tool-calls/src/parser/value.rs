//! Writes the arguments of a call as JSON while they arrive: `ArgumentsWriter`, and `ValueReader` for one of them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::event::Output;
use super::input::Input;
use super::scan::{Found, MAX_SPACE, Scan, Tag, TagKind, Tail, find_end, marker_at, space_within};
use super::steps;
use crate::entities;
use crate::tools::BodyText;
use crate::tools::schema::{Schema, leaf_value};

/// The depth up to which elements become lists and objects; deeper ones stay text.
const MAX_DEPTH: usize = 32;
/// The bytes of a tag within a value beyond which it is text.
const MAX_TAG: usize = 512;

/// Writes the arguments of a call as one JSON object, member by member, while their values arrive.
///
/// The first value of a name counts; later ones are left out.
#[derive(Default)]
pub(super) struct ArgumentsWriter {
    names: HashSet<String>,
    /// Whether the open value is left out.
    is_muted: bool,
}

impl ArgumentsWriter {
    /// Begins a member, whose value follows as JSON.
    pub(super) fn open(&mut self, name: &str, out: &mut Output<'_>) {
        let separator = if self.names.is_empty() { "{" } else { "," };
        self.is_muted = !self.names.insert(name.to_owned());
        self.json(&format!("{separator}{}:", Value::from(name)), out);
    }

    /// Writes a piece of the open value.
    pub(super) fn json(&self, json: &str, out: &mut Output<'_>) {
        if !self.is_muted {
            out.arguments(json);
        }
    }

    /// Writes a piece of the open value, which is a string.
    fn text(&self, text: &str, out: &mut Output<'_>) {
        let quoted = Value::from(text).to_string();
        self.json(quoted.get(1..quoted.len() - 1).unwrap_or_default(), out);
    }

    pub(super) fn member(&mut self, name: &str, value: &Value, out: &mut Output<'_>) {
        self.open(name, out);
        self.json(&value.to_string(), out);
    }

    pub(super) fn end(&self, out: &mut Output<'_>) {
        out.arguments(if self.names.is_empty() { "{}" } else { "}" });
    }
}

/// Reads the text of one argument up to the marker that closes it, and writes its value.
pub(super) struct ValueReader {
    pub(super) name: String,
    /// The marker; upper and lower case are equal.
    close: String,
    kind: Kind,
}

enum Kind {
    /// Before the first character of a string, which these markers may surround.
    Start(String, String),
    /// A string, as it is. If this guard is not empty, the string ends with it, right before the closing marker.
    Text(String),
    /// JSON.
    Json,
    /// A value that may have elements in it; it is written at its end.
    Elements(Elements),
}

impl ValueReader {
    /// Creates a reader of a string that is passed on as it is, while it arrives.
    pub(super) fn text(name: &str, close: String) -> Self {
        Self { name: name.to_owned(), close, kind: Kind::Text(String::new()) }
    }

    /// Creates a reader of JSON that is passed on as it is, while it arrives.
    pub(super) fn json(name: &str, close: String) -> Self {
        Self { name: name.to_owned(), close, kind: Kind::Json }
    }

    /// Creates a reader of an element of this name. One that is no string may have elements of the same name in it.
    pub(super) fn element(name: &str, element: &str, schema: Schema<'_>) -> Self {
        let nests_in = (!schema.allows("string")).then(|| element.to_owned());
        let elements = Elements { nests_in, text: String::new(), depth: 0, scan: Scan::default() };
        Self { name: name.to_owned(), close: format!("</{element}>"), kind: Kind::Elements(elements) }
    }

    /// Creates the reader of the argument that is the text of a short form.
    pub(super) fn body(name: &str, close: String, text: &BodyText) -> Self {
        let kind = match text {
            BodyText::Value => Kind::Elements(Elements::default()),
            BodyText::Verbatim(Some((start, end))) => Kind::Start(start.to_string(), end.to_string()),
            BodyText::Verbatim(None) => Kind::Start(String::new(), String::new()),
        };
        Self { name: name.to_owned(), close, kind }
    }

    /// Begins the member, unless it is written at its end.
    pub(super) fn begin(&self, arguments: &mut ArgumentsWriter, out: &mut Output<'_>) {
        match self.kind {
            Kind::Start(..) | Kind::Text(_) => {
                arguments.open(&self.name, out);
                arguments.json("\"", out);
            }
            Kind::Json => arguments.open(&self.name, out),
            Kind::Elements(_) => {}
        }
    }

    /// Reads on. Returns the bytes of the closing marker, once it is next.
    pub(super) fn read(
        &mut self,
        input: &mut Input,
        tail: Tail,
        arguments: &ArgumentsWriter,
        out: &mut Output<'_>,
    ) -> Option<usize> {
        if let Kind::Start(start, guard) = &mut self.kind {
            let (length, is_marked) = beginning(input.rest(), start, tail)?;
            let guard = if is_marked { std::mem::take(guard) } else { String::new() };
            out.body(input.take(length));
            self.kind = Kind::Text(guard);
        }
        let guard = match &mut self.kind {
            Kind::Elements(elements) => return elements.read(&self.close, input, tail, out),
            Kind::Text(guard) => guard.as_str(),
            Kind::Json | Kind::Start(..) => "",
        };
        let (before, end) = find_end(input.rest(), guard, &self.close, tail);
        let text = input.take(before);
        out.body(text);
        match self.kind {
            Kind::Json => arguments.json(text, out),
            _ => arguments.text(text, out),
        }
        end
    }

    /// Writes the end of the value.
    pub(super) fn end(self, schema: Schema<'_>, arguments: &mut ArgumentsWriter, out: &mut Output<'_>) {
        match self.kind {
            Kind::Start(..) | Kind::Text(_) => arguments.json("\"", out),
            Kind::Json => {}
            Kind::Elements(elements) => {
                arguments.member(&self.name, &value_of(&elements.text, schema, MAX_DEPTH), out);
            }
        }
    }
}

/// Returns the bytes of markup before a verbatim text, and whether the marker `start` is in them; `None` if more text
/// is needed. White space may stand before the marker, and one line break before the text.
fn beginning(text: &str, start: &str, tail: Tail) -> Option<(usize, bool)> {
    let space = space_within(text, MAX_SPACE);
    let marker = match start {
        "" => Found::None(0),
        start => marker_at(text.get(space..).unwrap_or_default(), start, tail),
    };
    let (length, is_marked) = match marker {
        Found::Whole(length) => (space + length, true),
        Found::Undecided => return None,
        Found::None(_) => (0, false),
    };
    match text.get(length..).unwrap_or_default() {
        "" | "\r" if tail == Tail::Open => None,
        rest if rest.starts_with('\n') => Some((length + 1, is_marked)),
        rest if rest.starts_with("\r\n") => Some((length + 2, is_marked)),
        _ => Some((length, is_marked)),
    }
}

/// Collects a value that may have elements in it.
#[derive(Default)]
struct Elements {
    /// The name of the element around the value, if it may have elements of that name in it.
    nests_in: Option<String>,
    text: String,
    /// The number of open elements of that name.
    depth: usize,
    scan: Scan,
}

impl Elements {
    /// Reads on. Returns the bytes of the closing tag, once it is next.
    fn read(&mut self, close: &str, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> Option<usize> {
        loop {
            let rest = input.rest();
            let plain = rest.find(|letter| close.starts_with(letter)).unwrap_or(rest.len());
            steps::count(plain + 1);
            let length = match plain {
                0 if rest.is_empty() => return None,
                0 => match marker_at(rest, close, tail) {
                    Found::Whole(length) if self.depth == 0 => return Some(length),
                    Found::Whole(length) => {
                        self.depth -= 1;
                        length
                    }
                    Found::Undecided => return None,
                    Found::None(_) => self.tag_at(rest, tail)?,
                },
                plain => plain,
            };
            let text = input.take(length);
            self.text.push_str(text);
            out.body(text);
        }
    }

    /// Returns the bytes of the tag or of other text at this place; `None` if more text is needed.
    fn tag_at(&mut self, rest: &str, tail: Tail) -> Option<usize> {
        let Some(element) = &self.nests_in else { return Some(1) };
        match marker_at(rest.get(1..).unwrap_or_default(), element, tail) {
            Found::Whole(_) => {}
            Found::Undecided => return None,
            Found::None(_) => return Some(1),
        }
        let window = window(rest);
        let found = self.scan.tag(window);
        if found == Found::Undecided && tail == Tail::Open && rest.len() < MAX_TAG {
            return None;
        }
        self.scan = Scan::default();
        let Found::Whole(length) = found else { return Some(1) };
        let Some(tag) = window.get(..length).and_then(Tag::read) else { return Some(1) };
        self.depth += usize::from(tag.is(TagKind::Opening, element));
        Some(length)
    }
}

fn value_of(text: &str, schema: Schema<'_>, depth: usize) -> Value {
    let text = text.trim();
    let elements = if depth == 0 || schema.allows("string") { None } else { elements(text) };
    let Some(elements) = elements else {
        let literal = text.strip_prefix("<![CDATA[").and_then(|text| text.strip_suffix("]]>"));
        return literal
            .map_or_else(|| leaf_value(&entities::decoded(text), schema), |text| leaf_value(text, schema));
    };
    let are_items = elements.iter().all(|(tag, _)| tag.name.eq_ignore_ascii_case("item"));
    if are_items || (schema.allows("array") && !schema.allows("object")) {
        return elements.iter().map(|(_, text)| value_of(text, schema.items(), depth - 1)).collect();
    }
    let mut members = Map::new();
    for (tag, text) in elements {
        let is_argument = tag.name.eq_ignore_ascii_case("arg");
        let name = tag.attribute("name").filter(|_| is_argument).unwrap_or(&tag.name);
        members.entry(name).or_insert_with(|| value_of(text, schema.property(name), depth - 1));
    }
    Value::Object(members)
}

/// Returns the elements that a text consists of, each with the text in it, or `None` if it has other text or no
/// element.
fn elements(text: &str) -> Option<Vec<(Tag, &str)>> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (tag, after) = tag_at(rest)?;
        let (inside, after) = match tag.kind {
            TagKind::Closing => return None,
            TagKind::Empty => ("", after),
            TagKind::Opening => split_at_close(after, &tag.name)?,
        };
        found.push((tag, inside));
        rest = after.trim_start();
    }
    (!found.is_empty()).then_some(found)
}

/// Splits a text at the tag that closes the element `name`, and leaves the tag out.
fn split_at_close<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let mut depth = 0_usize;
    for (at, _) in text.match_indices('<') {
        steps::count(1);
        let from = text.get(at..)?;
        let named = from.get(1..)?;
        if let Found::None(_) = marker_at(named.strip_prefix('/').unwrap_or(named), name, Tail::Ended) {
            continue;
        }
        let Some((tag, after)) = tag_at(from) else { continue };
        if tag.is(TagKind::Opening, name) {
            depth += 1;
        } else if tag.is(TagKind::Closing, name) {
            match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return Some((text.get(..at)?, after)),
            }
        }
    }
    None
}

/// Returns the tag at the start of a text, and what follows it.
fn tag_at(text: &str) -> Option<(Tag, &str)> {
    let Found::Whole(length) = Scan::default().tag(window(text)) else { return None };
    let (tag, after) = text.split_at_checked(length)?;
    Some((Tag::read(tag)?, after))
}

/// The beginning of a text, in which a tag must end.
fn window(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_TAG)).unwrap_or_default()
}
