//! Writes a call in each format.

use advisor_core::json::{MOST_VALUES, values};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::entities::{encoded, with_broken};
use crate::format::TextFormat;
use crate::parser::TextCallParser;
use crate::parser::event::{ParserEvent, ParserLimits};
use crate::parser::syntax::Tokens;
use crate::tools::{BodyText, TextTools, ToolForm};

/// Writes a call as an element. Arguments that elements would change are written as JSON.
pub(super) fn in_xml(name: &str, arguments: &str, tools: &TextTools) -> String {
    if let Some(members) = members(arguments) {
        let text = in_elements(name, &members, tools);
        if is_read_back(&text, TextFormat::Xml, &members, tools) {
            return text;
        }
    }
    format!("<tool name=\"{}\">\n{}\n</tool>", encoded(name), without_tags(arguments))
}

/// Writes a call as the tokens of a vendor's models.
pub(super) fn in_tokens(tokens: &Tokens, header: &str, arguments: &str) -> String {
    let Tokens { call, arguments: separator, call_end, .. } = tokens;
    format!("{call}{header}{separator}{}{call_end}", without_tags(arguments))
}

/// Returns arguments in which no tag begins. Those that are no JSON stay as they are.
fn without_tags(arguments: &str) -> String {
    // In JSON, the character can only be in a string.
    if is_json(arguments) { arguments.replace('<', "\\u003c") } else { arguments.to_owned() }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns arguments with few enough values to be parsed.
fn members(arguments: &str) -> Option<Map<String, Value>> {
    let is_small = values(arguments.as_bytes()) <= MOST_VALUES;
    is_small.then(|| serde_json::from_str(arguments).ok()).flatten()
}

/// Checks whether the parser reads exactly these arguments in the text of a call.
fn is_read_back(text: &str, format: TextFormat, arguments: &Map<String, Value>, tools: &TextTools) -> bool {
    let limits = ParserLimits { call: usize::MAX, ..ParserLimits::default() };
    let mut parser = TextCallParser::new([format], tools, limits);
    let mut events = Vec::new();
    if parser.push(text, &mut events).and_then(|()| parser.finish(&mut events)).is_err() {
        return false;
    }
    let pieces = events.iter().filter_map(|event| match event {
        ParserEvent::Arguments(piece) => Some(piece.as_str()),
        _ => None,
    });
    let read: String = pieces.collect();
    serde_json::from_str::<Map<String, Value>>(&read).is_ok_and(|read| read == *arguments)
}

fn in_elements(name: &str, members: &Map<String, Value>, tools: &TextTools) -> String {
    let form = tools.form(name);
    let name = encoded(name);
    if members.is_empty() {
        return format!("<tool name=\"{name}\">\n</tool>");
    }
    let mut text = format!("<tool name=\"{name}\">\n<arguments>\n");
    // The text of a short form is last, so that a reader knows the other arguments when it streams.
    let is_body = |member: &str| form.is_some_and(|form| form.body == *member);
    let (last, first): (Vec<_>, Vec<_>) = members.iter().partition(|(member, _)| is_body(member));
    for (member, value) in first.into_iter().chain(last) {
        let written = match (form, value) {
            (Some(form), Value::String(body)) if is_body(member) => written_body(form, body),
            _ => written_value(value),
        };
        text.push_str(&format!("<arg name=\"{}\">{written}</arg>\n", encoded(member)));
    }
    text.push_str("</arguments>\n</tool>");
    text
}

fn written_body(form: &ToolForm, body: &str) -> String {
    match &form.body_text {
        BodyText::Value => written_text(body),
        BodyText::Verbatim(Some((start, end))) => format!("\n{start}\n{body}{end}\n"),
        // The line break at the start is left out when the text is read.
        BodyText::Verbatim(None) => format!("\n{body}"),
    }
}

fn written_value(value: &Value) -> String {
    match value {
        Value::String(text) => written_text(text),
        Value::Array(items) if !items.is_empty() => {
            let items = items.iter().map(|item| format!("\n<item>{}</item>", written_value(item)));
            items.chain(["\n".to_owned()]).collect()
        }
        Value::Object(members) if !members.is_empty() => {
            let members = members.iter().map(|(name, value)| {
                format!("\n<arg name=\"{}\">{}</arg>", encoded(name), written_value(value))
            });
            members.chain(["\n".to_owned()]).collect()
        }
        other => other.to_string(),
    }
}

/// Writes a text. White space at its ends would be left out, so such a text is a section of characters.
fn written_text(text: &str) -> String {
    if text.trim() == text { encoded(text) } else { format!("<![CDATA[{text}]]>") }
}

/// Writes a call as an object. Arguments that are no JSON are written as a string.
pub(super) fn in_json(name: &str, arguments: &str) -> String {
    let arguments =
        if is_json(arguments) { arguments.to_owned() } else { Value::from(arguments).to_string() };
    format!("{{\"tool\": {{\"function\": {}, \"parameters\": {arguments}}}}}", Value::from(name))
}

/// Writes a call between markers. If its short form would change the arguments, they are written as JSON.
pub(super) fn in_sentinel(name: &str, arguments: &str, tools: &TextTools) -> String {
    if let Some(members) = members(arguments)
        && let Some(text) = in_short_form(name, &members, tools)
        && is_read_back(&text, TextFormat::Sentinel, &members, tools)
    {
        return text;
    }
    // In JSON, the marker can only be in a string.
    let (name, arguments) = (Value::from(name), with_broken(arguments, "[[seg_end]]", "\\u005b"));
    format!("[[SEG_START {{\"type\": \"tool\", \"tool_name\": {name}}}]]\n{arguments}\n[[SEG_END]]")
}

fn in_short_form(name: &str, members: &Map<String, Value>, tools: &TextTools) -> Option<String> {
    let form = tools.form(name)?;
    let body = members.get(form.body.as_str())?.as_str()?;
    let others = members.iter().filter(|(member, _)| *form.body != ***member);
    let others: String =
        others.map(|(member, value)| format!(", {}: {value}", Value::from(member.as_str()))).collect();
    Some(format!("[[SEG_START {{\"type\": {}{others}}}]]\n{body}[[SEG_END]]", Value::from(name)))
}
