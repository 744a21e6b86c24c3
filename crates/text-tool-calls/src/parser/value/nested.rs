//! `Nested`: collects elements and makes lists and objects of them.

use serde_json::{Map, Value};

use crate::parser::event::Output;
use crate::parser::input::{Input, Tail};
use crate::parser::marker::{Marker, marker_at};
use crate::parser::markup::entities::decoded;
use crate::parser::markup::tag::{Scanned, Tag, TagKind, TagScan};
use crate::parser::steps;
use crate::tools::coercion::{Schema, leaf_value};

/// The depth up to which elements become lists and objects; deeper ones stay text.
const MAX_DEPTH: usize = 32;
/// The bytes of a tag beyond which it is text.
const MAX_TAG: usize = 512;

/// Collects a value that may have elements in it, up to the tag that closes it.
#[derive(Debug)]
pub(in crate::parser) struct Nested {
    /// The name of the element around the value.
    element: String,
    close: String,
    text: String,
    /// The number of open elements of the same name.
    depth: usize,
    tag: TagScan,
}

impl Nested {
    pub(in crate::parser) fn new(element: &str, close: String) -> Self {
        let element = element.to_owned();
        Self { element, close, text: String::new(), depth: 0, tag: TagScan::default() }
    }

    /// Reads on. Returns whether the closing tag is next.
    pub(in crate::parser) fn read(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> bool {
        loop {
            let rest = input.rest();
            let plain = rest.find('<').unwrap_or(rest.len());
            steps::count(plain + 1);
            let length = match plain {
                0 if rest.is_empty() => return false,
                0 => match self.tag_at(rest, tail) {
                    Some(0) => return true,
                    Some(length) => length,
                    None => return false,
                },
                plain => plain,
            };
            let text = input.take(length);
            self.text.push_str(text);
            out.body(text);
        }
    }

    /// Returns the length of the tag or the text at this `<`, 0 if it is the closing tag, and `None` if it is
    /// undecided.
    fn tag_at(&mut self, rest: &str, tail: Tail) -> Option<usize> {
        match marker_at(rest, &self.close) {
            Marker::Whole if self.depth == 0 => return Some(0),
            Marker::Whole => {
                self.depth -= 1;
                return Some(self.close.len());
            }
            Marker::Maybe if tail == Tail::Open => return None,
            Marker::Maybe | Marker::None => {}
        }
        let name = rest.get(1..).unwrap_or_default();
        match marker_at(name, &self.element) {
            Marker::Maybe if tail == Tail::Open => return None,
            Marker::Maybe | Marker::None => return Some(1),
            Marker::Whole => {}
        }
        let scanned = self.tag.scan(window(rest));
        if matches!(scanned, Scanned::Incomplete) && tail == Tail::Open && rest.len() < MAX_TAG {
            return None;
        }
        self.tag = TagScan::default();
        let Scanned::Tag(tag) = scanned else { return Some(1) };
        if tag.is(TagKind::Opening, &self.element) {
            self.depth += 1;
        }
        Some(tag.length)
    }

    /// Returns the value of the collected text.
    pub(in crate::parser) fn value(&self, schema: Schema<'_>) -> Value {
        value_of(&self.text, schema, MAX_DEPTH)
    }
}

/// Returns the arguments that the elements in a text name, also those in an element `arguments`.
pub(in crate::parser) fn arguments_in(text: &str, schema: Schema<'_>) -> Option<Value> {
    let outer = elements(text)?;
    let inner = match outer.as_slice() {
        [(tag, inside)] if tag.name.eq_ignore_ascii_case("arguments") => elements(inside),
        _ => None,
    };
    Some(object(&inner.unwrap_or(outer), schema, MAX_DEPTH))
}

fn value_of(text: &str, schema: Schema<'_>, depth: usize) -> Value {
    let text = text.trim();
    let elements = if depth == 0 || schema.allows("string") { None } else { elements(text) };
    let Some(elements) = elements else {
        let literal = text.strip_prefix("<![CDATA[").and_then(|text| text.strip_suffix("]]>"));
        return match literal {
            Some(text) => leaf_value(text, schema),
            None => leaf_value(&decoded(text), schema),
        };
    };
    let are_items = elements.iter().all(|(tag, _)| tag.name.eq_ignore_ascii_case("item"));
    if are_items || (schema.allows("array") && !schema.allows("object")) {
        let schema = schema.items();
        return elements.iter().map(|(_, text)| value_of(text, schema, depth - 1)).collect();
    }
    object(&elements, schema, depth)
}

fn object(elements: &[(Tag, &str)], schema: Schema<'_>, depth: usize) -> Value {
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
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->")?.1.trim_start();
            continue;
        }
        let Scanned::Tag(tag) = rest.starts_with('<').then(|| scan(rest))? else {
            return None;
        };
        let after = rest.get(tag.length..)?;
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
        if marker_at(named.strip_prefix('/').unwrap_or(named), name) != Marker::Whole {
            continue;
        }
        let Scanned::Tag(tag) = scan(from) else { continue };
        if tag.is(TagKind::Opening, name) {
            depth += 1;
        } else if tag.is(TagKind::Closing, name) {
            match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return Some((text.get(..at)?, from.get(tag.length..)?)),
            }
        }
    }
    None
}

fn scan(text: &str) -> Scanned {
    TagScan::default().scan(window(text))
}

/// The beginning of a text, in which a tag must end.
fn window(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_TAG)).unwrap_or_default()
}
