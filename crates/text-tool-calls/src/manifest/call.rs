use serde_json::{Map, Value};

use super::JsonShape;
use crate::parser::markup::entities::encoded;
use crate::tools::{BodyText, TextTools, ToolForm};

/// Writes a call as an element.
pub(super) fn in_xml(name: &str, arguments: &str, tools: &TextTools) -> String {
    let name = encoded(name);
    let Ok(members) = serde_json::from_str::<Map<String, Value>>(arguments) else {
        return format!("<tool name=\"{name}\">\n{arguments}\n</tool>");
    };
    if members.is_empty() {
        return format!("<tool name=\"{name}\">\n</tool>");
    }
    let form = tools.form(&name);
    let mut text = format!("<tool name=\"{name}\">\n<arguments>\n");
    for (member, value) in &members {
        let written = match (form, value) {
            (Some(form), Value::String(body)) if *form.body == **member => written_body(form, body),
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
        BodyText::Verbatim(Some(markers)) => format!("\n{}\n{body}{}\n", markers.start(), markers.end()),
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

/// The beginnings of tags that would end a section of characters.
const TAGS: [&str; 4] = ["<arg", "</arg", "<item", "</item"];

/// Writes a text. White space at its ends would be left out, so such a text is a section of characters. A text with
/// tags of a call loses its white space instead.
fn written_text(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let has_tag = TAGS.iter().any(|tag| lower.contains(tag));
    if text.trim() != text && !has_tag { format!("<![CDATA[{text}]]>") } else { encoded(text) }
}

/// Writes a call as an object. Arguments that are no JSON are written as a string.
pub(super) fn in_json(name: &str, arguments: &str, shape: JsonShape) -> String {
    let is_json = serde_json::from_str::<Value>(arguments).is_ok();
    let arguments = if is_json { arguments.to_owned() } else { Value::from(arguments).to_string() };
    let name = Value::from(name);
    match shape {
        JsonShape::Tool => format!("{{\"tool\": {{\"function\": {name}, \"parameters\": {arguments}}}}}"),
        JsonShape::OpenAi => {
            format!(
                "{{\"tool_calls\": [{{\"function\": {{\"name\": {name}, \"arguments\": {arguments}}}}}]}}"
            )
        }
        JsonShape::Gemini => format!("{{\"name\": {name}, \"args\": {arguments}}}"),
    }
}

/// Writes a call between markers.
pub(super) fn in_sentinel(name: &str, arguments: &str, tools: &TextTools) -> String {
    let members = serde_json::from_str::<Map<String, Value>>(arguments).ok();
    if let (Some(form), Some(members)) = (tools.form(name), members)
        && let Some(Value::String(body)) = members.get(form.body.as_str())
        && !body.contains("[[SEG_END]]")
    {
        let others = members.iter().filter(|(member, _)| *form.body != ***member);
        let others: String =
            others.map(|(member, value)| format!(", {}: {value}", Value::from(member.as_str()))).collect();
        return format!("[[SEG_START {{\"type\": {}{others}}}]]\n{body}[[SEG_END]]", Value::from(name));
    }
    // The marker can only be in a string, where its first character may be escaped.
    let arguments = arguments.replace("[[SEG_END]]", "\\u005b[SEG_END]]");
    format!(
        "[[SEG_START {{\"type\": \"tool\", \"tool_name\": {}}}]]\n{arguments}\n[[SEG_END]]",
        Value::from(name)
    )
}
