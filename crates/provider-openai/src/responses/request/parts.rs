//! User content and tool results, on the wire.

use advisor_core::{Media, MediaSource, Part};
use provider_http::media::{inline, note, text_of};
use serde_json::{Value, json};

use crate::request::parts::{joined_text, object, url};

/// Returns content: a string if it is text only, as the strictest servers require, or else a list of parts.
pub(super) fn content(parts: &[Part]) -> Value {
    match joined_text(parts) {
        Some(text) => text.into(),
        None => parts.iter().map(on_the_wire).collect(),
    }
}

fn on_the_wire(part: &Part) -> Value {
    if let Some(text) = text_of(part) {
        return text_part(&text);
    }
    match part {
        Part::Image(media) => image(media),
        // The API refuses these, in this request and in each later one of the conversation.
        Part::Audio(_) | Part::Video(_) => text_part(&note(part, "the Responses API does not take it")),
        Part::File(media) => file(media),
        _ => text_part(&note(part, "")),
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "input_text", "text": text })
}

fn image(media: &Media) -> Value {
    match &media.source {
        MediaSource::ProviderFile(id) => json!({ "type": "input_image", "file_id": id }),
        _ => object([("type", "input_image".into()), ("image_url", url(media).into())]),
    }
}

fn file(media: &Media) -> Value {
    match &media.source {
        MediaSource::ProviderFile(id) => json!({ "type": "input_file", "file_id": id }),
        MediaSource::Url(url) if inline(media).is_none() => {
            json!({ "type": "input_file", "file_url": url })
        }
        _ => object([
            ("type", "input_file".into()),
            ("filename", media.name.as_deref().unwrap_or("file").into()),
            ("file_data", url(media).into()),
        ]),
    }
}
