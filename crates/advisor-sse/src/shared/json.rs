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
