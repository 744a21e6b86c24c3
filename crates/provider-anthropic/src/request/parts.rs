//! User content and the content of tool results, as content blocks.

use advisor_core::{Media, MediaSource, Part, Text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The types of images that the API reads. Another one is left out with a note, since the API refuses it, in this
/// request and in each later one of the conversation.
const IMAGES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

/// Returns the content blocks of parts. Text without any letter is left out, since the API refuses it.
pub(super) fn blocks_of(parts: &[Part]) -> Vec<Value> {
    parts.iter().filter_map(block_of).collect()
}

/// Returns the text blocks of parts, with a note in place of media.
pub(super) fn texts_of(parts: &[Part]) -> Vec<Value> {
    parts.iter().filter_map(text_of).collect()
}

/// Returns a text block; `None` if the text is blank.
pub(super) fn text_block(text: &str) -> Option<Value> {
    let is_blank = text.trim().is_empty();
    (!is_blank).then(|| object([("type", "text".into()), ("text", text.into())]))
}

fn block_of(part: &Part) -> Option<Value> {
    let block = match part {
        Part::Image(media) => image(media),
        Part::File(media) if media.mime.starts_with("image/") => image(media),
        Part::File(media) => document(media),
        _ => None,
    };
    block.or_else(|| text_of(part))
}

/// Returns the text block of a part: its text, or a note about what it is.
fn text_of(part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => text_block(text),
        Part::Json(value) => text_block(&value.to_string()),
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
            text_block(&format!("[{} left out: the Messages API does not take it]", media.mime))
        }
        _ => text_block("[part of an unknown kind left out]"),
    }
}

fn image(media: &Media) -> Option<Value> {
    let source = match &media.source {
        MediaSource::Bytes(bytes) => {
            IMAGES.contains(&media.mime.as_str()).then(|| inline(&media.mime, bytes))?
        }
        other => by_reference(other)?,
    };
    Some(object([("type", "image".into()), ("source", source)]))
}

/// Returns a PDF or a text as a document; `None` for other files.
fn document(media: &Media) -> Option<Value> {
    let source = match &media.source {
        MediaSource::Bytes(bytes) if media.mime == *"application/pdf" => inline(&media.mime, bytes),
        MediaSource::Bytes(bytes) if is_text(&media.mime) => {
            let text = str::from_utf8(bytes).ok().filter(|text| !text.trim().is_empty())?;
            object([("type", "text".into()), ("media_type", "text/plain".into()), ("data", text.into())])
        }
        MediaSource::Bytes(_) => return None,
        other => by_reference(other)?,
    };
    let mut block = object([("type", "document".into()), ("source", source)]);
    if let (Some(name), Some(fields)) = (&media.name, block.as_object_mut()) {
        fields.insert("title".to_owned(), name.as_str().into());
    }
    Some(block)
}

fn inline(mime: &Text, bytes: &[u8]) -> Value {
    let data = STANDARD.encode(bytes).into();
    object([("type", "base64".into()), ("media_type", mime.as_str().into()), ("data", data)])
}

fn by_reference(source: &MediaSource) -> Option<Value> {
    let (kind, key, value) = match source {
        MediaSource::Url(url) => ("url", "url", url),
        MediaSource::ProviderFile(id) => ("file", "file_id", id),
        _ => return None,
    };
    Some(object([("type", kind.into()), (key, value.as_str().into())]))
}

fn is_text(mime: &str) -> bool {
    mime.starts_with("text/") || matches!(mime, "application/json" | "application/xml" | "application/yaml")
}

/// Makes an object of values that are moved: `json!` would copy an image once more.
pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}
