//! User content and tool results, as content blocks.

use std::borrow::Cow;

use advisor_core::{Media, MediaSource, Part, ToolResult};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::media::{inline, is_empty, note};
use provider_http::names::WireNames;
use provider_http::parts_of_result;
use serde::Serialize;
use serde_json::{Value, json};

/// The types of images that the API reads. Another one is left out with a note, since the API refuses it, in this
/// request and in each later one of the conversation.
const IMAGES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];
const NOT_TAKEN: &str = "the Messages API does not take it";

/// Returns the content blocks of parts. Text without any letter is left out, since the API refuses it.
pub(super) fn blocks(parts: &[Part]) -> Vec<Value> {
    parts.iter().filter_map(|part| media_block(part).or_else(|| text_block(part))).collect()
}

/// Returns a text block; `None` if the text is blank.
pub(super) fn text(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

/// The result of a tool.
#[derive(Serialize)]
pub(super) struct WireResult<'a> {
    r#type: &'static str,
    tool_use_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    content: Vec<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

/// Returns the result of a tool.
pub(super) fn result<'a>(result: &'a ToolResult, names: &'a WireNames) -> WireResult<'a> {
    WireResult {
        r#type: "tool_result",
        tool_use_id: names.call_id(&result.call_id),
        content: if result.is_error {
            // The content of a failure is text alone, and the API refuses an empty one.
            parts_of_result(result).iter().filter_map(text_block).collect()
        } else {
            blocks(&result.parts)
        },
        is_error: result.is_error,
    }
}

/// Returns the text block of a part: its text, or a note about its kind.
fn text_block(part: &Part) -> Option<Value> {
    match part {
        Part::Text(content) => text(content),
        Part::Json(value) => text(&value.to_string()),
        other => text(&note(other, NOT_TAKEN)),
    }
}

fn media_block(part: &Part) -> Option<Value> {
    match part {
        Part::Image(media) | Part::File(media) if is_empty(media) => None,
        Part::Image(media) => image(media),
        Part::File(media) if media.mime.starts_with("image/") => image(media),
        Part::File(media) => document(media),
        _ => None,
    }
}

fn image(media: &Media) -> Option<Value> {
    let source = match inline(media) {
        Some((mime, data)) => IMAGES.contains(&mime).then(|| in_base64(mime, data))?,
        None => by_reference(&media.source)?,
    };
    Some(Value::from_iter([("type", "image".into()), ("source", source)]))
}

/// Returns a PDF or a text as a document; `None` for other files.
fn document(media: &Media) -> Option<Value> {
    let source = match inline(media) {
        Some((mime @ "application/pdf", data)) => in_base64(mime, data),
        Some((mime, data)) if is_text(mime) => {
            let text = String::from_utf8(STANDARD.decode(&*data).ok()?).ok()?;
            let text = Some(text).filter(|text| !text.trim().is_empty())?;
            json!({ "type": "text", "media_type": "text/plain", "data": text })
        }
        Some(_) => return None,
        None => by_reference(&media.source)?,
    };
    let mut block = Value::from_iter([("type", "document".into()), ("source", source)]);
    if let (Some(name), Some(fields)) = (&media.name, block.as_object_mut()) {
        fields.insert("title".to_owned(), name.as_str().into());
    }
    Some(block)
}

/// Makes a source of a text that is moved: `json!` would copy an image once more.
fn in_base64(mime: &str, data: Cow<'_, str>) -> Value {
    let data = Value::from(data.into_owned());
    Value::from_iter([("type", "base64".into()), ("media_type", mime.into()), ("data", data)])
}

/// Returns the source of media that the server fetches. It cannot fetch a `data:` URL.
fn by_reference(source: &MediaSource) -> Option<Value> {
    match source {
        MediaSource::Url(url) if url.starts_with("data:") => None,
        MediaSource::Url(url) => Some(json!({ "type": "url", "url": url.as_str() })),
        MediaSource::ProviderFile(id) => Some(json!({ "type": "file", "file_id": id.as_str() })),
        _ => None,
    }
}

fn is_text(mime: &str) -> bool {
    mime.starts_with("text/") || matches!(mime, "application/json" | "application/xml" | "application/yaml")
}
