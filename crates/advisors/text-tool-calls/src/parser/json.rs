//! Finds the calls in a JSON object or list, which may be cut off.

use std::ops::Range;

use super::scan::{Scan, space_within};
use crate::string_fields::decoded;
use crate::tools::TextTools;

/// The bytes at the start of JSON in which its first key must be.
pub(super) const MAX_HEAD: usize = 64;
/// The depth of objects around the name and the arguments of a call.
const MAX_DEPTH: usize = 3;

/// The meaning of a member of an object around a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Name,
    /// The name of the tool, or an object with the call in it.
    Call,
    /// A list of calls.
    Calls,
    /// The arguments, as an object or as JSON in a string.
    Arguments,
    Id,
    /// A known member without meaning here.
    Note,
    Unknown,
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        match name {
            "name" | "tool_name" => Self::Name,
            "tool" | "function" | "function_call" | "tool_call" => Self::Call,
            "tool_calls" | "tools" => Self::Calls,
            "arguments" | "parameters" | "args" | "input" => Self::Arguments,
            "id" | "call_id" => Self::Id,
            "type" | "index" => Self::Note,
            _ => Self::Unknown,
        }
    }
}

pub(super) fn without_space(text: &str) -> &str {
    text.get(space_within(text, MAX_HEAD)..).unwrap_or_default()
}

/// A call in JSON.
#[derive(Debug, Default)]
pub(super) struct JsonCall {
    /// Where its object is in the text.
    pub(super) range: Range<usize>,
    pub(super) name: Option<String>,
    pub(super) id: Option<String>,
    /// The arguments as they are written, or the text of the string that they are in.
    pub(super) arguments: Option<String>,
    /// Whether its object is not cut off.
    pub(super) is_complete: bool,
    /// Whether a key marks the object as a call.
    is_explicit: bool,
}

/// Returns the calls in JSON, in order.
///
/// The first object decides: it names a known tool, and has arguments or a key that only calls have. A call in a list
/// behind it always counts, so that none is lost.
pub(super) fn calls(json: &str, tools: &TextTools) -> Vec<JsonCall> {
    let Some(list) = list_in(json) else {
        let call = JsonCall::read(json, 0..json.len(), false, Some(tools));
        return call.filter(|call| call.is_certain(tools)).into_iter().collect();
    };
    let mut calls: Vec<JsonCall> = Vec::new();
    for part in parts(json.get(list.clone()).unwrap_or_default()) {
        let range = list.start + part.start..list.start + part.end;
        let is_first = calls.is_empty();
        let call = JsonCall::read(json, range, !json.starts_with('['), is_first.then_some(tools));
        match call {
            Some(call) if is_first && !call.is_certain(tools) => break,
            Some(call) if call.is_complete || call.name.is_some() => calls.push(call),
            None if is_first => break,
            Some(_) | None => {}
        }
    }
    calls
}

/// Returns where the list of calls is: the text itself, or a member of the object that it is.
fn list_in(json: &str) -> Option<Range<usize>> {
    if json.starts_with('[') {
        return Some(0..json.len());
    }
    let members = members(json).into_iter();
    let mut known = members.skip_while(|member| matches!(member.key, Key::Id | Key::Note));
    let first = known.next().filter(|member| member.key == Key::Calls && member.text.starts_with('['));
    first.map(|member| member.range)
}

impl JsonCall {
    /// Reads the call in the object at this place. With `strict`, other members than those of a call may only follow
    /// what makes it certain that it calls one of these tools.
    fn read(json: &str, range: Range<usize>, is_explicit: bool, strict: Option<&TextTools>) -> Option<Self> {
        let object = json.get(range.clone())?.trim_start();
        let start = range.end - object.len();
        let object = object.trim_end();
        let is_complete = Scan::default().json(object) == Some(object.len());
        let range = start..start + object.len();
        let mut call = Self { range, is_explicit, is_complete, ..Self::default() };
        (object.starts_with('{') && call.take_members(object, 1, strict)).then_some(call)
    }

    /// Takes the members of an object. Returns whether it may be a call.
    fn take_members(&mut self, object: &str, depth: usize, strict: Option<&TextTools>) -> bool {
        for member in members(object) {
            match member.key {
                Key::Call if member.text.starts_with('{') && depth < MAX_DEPTH => {
                    self.is_explicit = true;
                    if !self.take_members(member.text, depth + 1, strict) {
                        return false;
                    }
                }
                Key::Name | Key::Call => {
                    let name = member.string().filter(|name| !name.trim().is_empty());
                    self.is_explicit |= member.key == Key::Call && name.is_some();
                    self.name = self.name.take().or(name);
                }
                Key::Id => self.id = self.id.take().or_else(|| member.string()),
                Key::Arguments => {
                    self.arguments.get_or_insert_with(|| member.arguments());
                }
                Key::Note => {}
                Key::Calls | Key::Unknown => {
                    if strict.is_some_and(|tools| !self.is_certain(tools)) {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn is_certain(&self, tools: &TextTools) -> bool {
        let is_known = self.name.as_ref().is_some_and(|name| tools.contains(name));
        is_known && (self.is_explicit || self.arguments.is_some())
    }
}

/// Returns where the parts of an object or a list are, between its commas. The last one may be cut off.
fn parts(json: &str) -> Vec<Range<usize>> {
    let (mut scan, mut parts, mut start) = (Scan::default(), Vec::new(), 1);
    for (at, byte) in json.bytes().enumerate() {
        let splits = byte == b',' && scan.depth() == 1 && !scan.is_in_string();
        let closes = scan.closes_with(byte);
        if splits || closes {
            parts.push(start..at);
            start = at + 1;
        }
        if closes {
            return parts;
        }
    }
    parts.push(start..json.len());
    parts
}

/// A member of an object.
struct Member<'a> {
    key: Key,
    /// The value without white space around it, and where it is in the object.
    text: &'a str,
    range: Range<usize>,
}

/// Returns the members of an object. A key that is cut off, or is none, ends them.
fn members(object: &str) -> Vec<Member<'_>> {
    let member = |part: Range<usize>| {
        let text = object.get(part.clone())?.trim_start().strip_prefix('"')?;
        let (key, after) = text.split_at_checked(string_end(text)?)?;
        let value = after.strip_prefix('"')?.trim_start().strip_prefix(':')?.trim_start();
        let start = part.end - value.len();
        let (text, key) = (value.trim_end(), Key::from(decoded(key).as_str()));
        Some(Member { key, text, range: start..start + text.len() })
    };
    parts(object).into_iter().map_while(member).collect()
}

impl Member<'_> {
    /// Returns the value if it is a whole string.
    fn string(&self) -> Option<String> {
        let text = self.text.strip_prefix('"')?;
        text.get(..string_end(text)?).map(decoded)
    }

    /// Returns the value as arguments: null is none, and in a string is JSON, which may be cut off.
    fn arguments(&self) -> String {
        match self.text.strip_prefix('"') {
            Some(text) => decoded(text.get(..string_end(text).unwrap_or(text.len())).unwrap_or_default()),
            None if self.text == "null" => String::new(),
            None => self.text.to_owned(),
        }
    }
}

/// Returns where the quote is that ends a string, which begins behind its first quote.
fn string_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}
