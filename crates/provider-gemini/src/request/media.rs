//! Media on the wire.

use advisor_core::{Media, MediaSource, Part};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Returns the part of the API for media; `None` for other parts.
pub(super) fn part(part: &Part) -> Option<Value> {
    match part {
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
            Some(Value::from_iter([field(media)]))
        }
        _ => None,
    }
}

/// Returns the field of a part that holds the media: its bytes, or its address.
///
/// A file of the provider is named by its URI.
pub(super) fn field(media: &Media) -> (&'static str, Value) {
    match &media.source {
        MediaSource::Bytes(bytes) => inline(&media.mime, STANDARD.encode(bytes)),
        MediaSource::Url(url) | MediaSource::ProviderFile(url) => match data_url(url) {
            Some((mime, data)) => inline(mime, data.to_owned()),
            None => {
                let mut file = Map::from_iter([("fileUri".to_owned(), url.as_str().into())]);
                // Such as `image/*`, where nobody knows.
                if !media.mime.contains('*') {
                    file.insert("mimeType".to_owned(), media.mime.as_str().into());
                }
                ("fileData", Value::Object(file))
            }
        },
        _ => ("text", "[media of an unknown kind]".into()),
    }
}

fn inline(mime: &str, data: String) -> (&'static str, Value) {
    ("inlineData", Value::from_iter([("mimeType", Value::from(mime)), ("data", data.into())]))
}

/// Returns the type and the base64 text of a `data:` URL.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}
