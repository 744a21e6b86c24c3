//! User content and the content of tool results, as content blocks.

use std::borrow::Cow;

use advisor_core::{Media, MediaSource, Part};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::media::{inline, is_empty, left_out};
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
        Part::Image(media) | Part::File(media) if is_empty(media) => None,
        Part::Image(media) => image(media),
        Part::File(media) if media.mime.starts_with("image/") => image(media),
        Part::File(media) => document(media),
        _ => None,
    };
    block.or_else(|| text_of(part))
}

/// Returns the text block of a part: its text, or a note about its kind.
fn text_of(part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => text_block(text),
        Part::Json(value) => text_block(&value.to_string()),
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
            text_block(&left_out(media, "the Messages API does not take it"))
        }
        _ => text_block("[part of an unknown kind left out]"),
    }
}

fn image(media: &Media) -> Option<Value> {
    let source = match inline(media) {
        Some((mime, data)) => IMAGES.contains(&mime).then(|| in_base64(mime, data))?,
        None => by_reference(&media.source)?,
    };
    Some(object([("type", "image".into()), ("source", source)]))
}

/// Returns a PDF or a text as a document; `None` for other files.
fn document(media: &Media) -> Option<Value> {
    let source = match inline(media) {
        Some((mime @ "application/pdf", data)) => in_base64(mime, data),
        Some((mime, data)) if is_text(mime) => {
            let text = String::from_utf8(STANDARD.decode(&*data).ok()?).ok()?;
            let text = Some(text).filter(|text| !text.trim().is_empty())?;
            object([("type", "text".into()), ("media_type", "text/plain".into()), ("data", text.into())])
        }
        Some(_) => return None,
        None => by_reference(&media.source)?,
    };
    let mut block = object([("type", "document".into()), ("source", source)]);
    if let (Some(name), Some(fields)) = (&media.name, block.as_object_mut()) {
        fields.insert("title".to_owned(), name.as_str().into());
    }
    Some(block)
}

fn in_base64(mime: &str, data: Cow<'_, str>) -> Value {
    let data = data.into_owned().into();
    object([("type", "base64".into()), ("media_type", mime.into()), ("data", data)])
}

/// Returns the source of media that the server fetches. It cannot fetch a `data:` URL.
fn by_reference(source: &MediaSource) -> Option<Value> {
    let (kind, key, value) = match source {
        MediaSource::Url(url) if url.starts_with("data:") => return None,
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
