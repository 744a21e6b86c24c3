//! The parts of a message of the user, in the form of the AI SDK.

use advisor_core::{Media, MediaSource, Message, MessageContent, Part};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Returns the parts of a message of the user, in the form of the AI SDK. There is at least one.
///
/// A file that only the provider has is left out.
pub(super) fn user_parts(message: &Message) -> Vec<Value> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let part = |part: &Part| match part {
        Part::Text(part) => Some(text(part)),
        Part::Json(value) => Some(text(&value.to_string())),
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => file(media),
        _ => None,
    };
    let mut parts: Vec<_> = match message.content() {
        MessageContent::User(parts) => parts.iter().filter_map(part).collect(),
        _ => Vec::new(),
    };
    if parts.is_empty() {
        parts.push(text(""));
    }
    parts
}

fn file(media: &Media) -> Option<Value> {
    let url = match &media.source {
        MediaSource::Url(url) => url.to_string(),
        MediaSource::Bytes(bytes) => format!("data:{};base64,{}", media.mime, STANDARD.encode(bytes)),
        _ => return None,
    };
    let mut part = json!({"type": "file", "mediaType": media.mime, "url": url});
    if let (Some(name), Some(part)) = (&media.name, part.as_object_mut()) {
        part.insert("filename".into(), name.as_str().into());
    }
    Some(part)
}
