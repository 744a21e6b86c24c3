//! Arguments, results and media as JSON, as protocols write them.

use advisor_core::{Media, MediaSource, Part, ToolCall, ToolResult};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Returns the arguments of a call as JSON, or as a string if they are no JSON.
pub(crate) fn arguments(text: &str) -> Value {
    if ToolCall::gives_none(text) {
        return Value::Object(serde_json::Map::new());
    }
    let text = text.trim();
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.into()))
}

/// Returns a result as JSON: one text or value as it is, several parts as a list. A text that is JSON stays a text.
pub(crate) fn result(result: &ToolResult) -> Value {
    match result.parts.as_slice() {
        [part] => part_of(part),
        parts => parts.iter().map(part_of).collect(),
    }
}

/// Returns the part of a result, or of a report of progress, as JSON.
pub(crate) fn part_of(part: &Part) -> Value {
    match part {
        Part::Text(text) => Value::String(text.to_string()),
        Part::Json(value) => value.clone(),
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

/// Returns the address of media: its URL, or a data URL. `None` if only the provider has the bytes.
pub(crate) fn url(media: &Media) -> Option<String> {
    match &media.source {
        MediaSource::Url(url) => Some(url.to_string()),
        MediaSource::Bytes(bytes) => Some(format!("data:{};base64,{}", media.mime, STANDARD.encode(bytes))),
        _ => None,
    }
}

/// Returns the text that stands for media in protocols without a place for them: a picture or a link in Markdown. `None` if
/// only the provider has the bytes.
pub fn media_as_text(media: &Media) -> Option<String> {
    let (url, is_image) = (url(media)?, media.mime.starts_with("image/"));
    let of_kind = if is_image { "image" } else { media.mime.as_str() };
    let name = media.name.as_ref().map_or(of_kind, |name| name.as_str());
    let name = name.replace(|char: char| char.is_control() || "[]\\".contains(char), " ");
    // An address that is no data URL is the model's: nothing in it may end the link.
    let in_link = |char: char| !char.is_control() && !char.is_whitespace() && !"()<>\\".contains(char);
    let url = match url.chars().all(in_link) {
        true => url,
        false => {
            url.chars().map(|char| if in_link(char) { char.to_string() } else { escape(char) }).collect()
        }
    };
    Some(format!("{}[{name}]({url})", if is_image { "!" } else { "" }))
}

/// Returns a character in percent-encoding.
fn escape(char: char) -> String {
    char.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
}
