//! Media on the wire.

use advisor_core::{Media, MediaSource, Part};
use provider_http::media::{inline, is_empty, left_out};
use serde_json::{Map, Value};

/// Returns the part of the API for media; `None` for other parts, and for media that are empty.
pub(super) fn part(part: &Part) -> Option<Value> {
    media_of(part).filter(|media| !is_empty(media)).map(|media| Value::from_iter([field(media)]))
}

/// Returns the note in place of media that are empty; `None` for other parts.
pub(super) fn note(part: &Part) -> Option<String> {
    media_of(part).filter(|media| is_empty(media)).map(|media| left_out(media, ""))
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
            // A wildcard such as `image/*` does not name the type.
            if !media.mime.contains('*') {
                file.insert("mimeType".to_owned(), media.mime.as_str().into());
            }
            ("fileData", Value::Object(file))
        }
        _ => ("text", "[media of an unknown kind]".into()),
    }
}
