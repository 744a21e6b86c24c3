//! Media on the wire.

use advisor_core::{Media, MediaSource, Part};
use provider_http::media::{inline, inline_mime, is_empty, left_out};
use serde_json::{Map, Value};

/// The types of images that the API reads. A user may try another one, but that of an earlier answer must not make the
/// API refuse the whole conversation.
const IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];

/// Returns the part of the API for media; `None` for other parts, and for media that the API refuses.
pub(super) fn part(part: &Part) -> Option<Value> {
    let media = media_of(part).filter(|media| refusal(media).is_none())?;
    Some(Value::from_iter([field(media)]))
}

/// Returns the note in place of media that the API refuses; `None` for other parts.
pub(super) fn note(part: &Part) -> Option<String> {
    let media = media_of(part)?;
    refusal(media).map(|reason| left_out(media, reason))
}

/// Returns the reason why the API refuses media; `None` if it does not.
fn refusal(media: &Media) -> Option<&'static str> {
    match inline_mime(media) {
        _ if is_empty(media) => Some("it is empty"),
        Some(mime) if !is_known(mime) => Some("its type is unknown"),
        _ => None,
    }
}

/// Returns the reason why media of an earlier answer cannot be sent; `None` if they can.
pub(super) fn refusal_of_answer(media: &Media) -> Option<&'static str> {
    let is_unreadable = |mime: &str| mime.starts_with("image/") && !IMAGES.contains(&mime);
    let unreadable = inline_mime(media).filter(|mime| is_unreadable(mime));
    refusal(media).or(unreadable.map(|_| "Gemini does not read this type"))
}

/// Checks whether a type says what the bytes are.
fn is_known(mime: &str) -> bool {
    !mime.contains('*') && mime != "application/octet-stream"
}

fn media_of(part: &Part) -> Option<&Media> {
    match part {
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => Some(media),
        _ => None,
    }
}

/// Returns the field of a part that holds the media: its bytes, or its address.
///
/// A file of the provider is named by its URI.
pub(super) fn field(media: &Media) -> (&'static str, Value) {
    if let Some((mime, data)) = inline(media) {
        let data = data.into_owned().into();
        return ("inlineData", Value::from_iter([("mimeType", Value::from(mime)), ("data", data)]));
    }
    match &media.source {
        MediaSource::Url(url) | MediaSource::ProviderFile(url) => {
            let mut file = Map::from_iter([("fileUri".to_owned(), url.as_str().into())]);
            if is_known(&media.mime) {
                file.insert("mimeType".to_owned(), media.mime.as_str().into());
            }
            ("fileData", Value::Object(file))
        }
        _ => ("text", "[media of an unknown kind]".into()),
    }
}
