//! Content that arrives in one piece: whole messages, images, citations, raw details.

use std::collections::HashSet;

use advisor_core::{Citation, DeltaKind, Media, Opaque, ProviderData, Text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::list_of;
use crate::wire::{CallIndex, Delta as WireDelta, Str};

/// Numbers the calls of a whole message by position, which is certain there, and removes repeated ids.
pub(super) fn number_calls(message: &mut WireDelta<'_>) {
    let mut ids = HashSet::new();
    for (place, call) in message.tool_calls.iter_mut().flatten().enumerate() {
        call.index = i64::try_from(place).map_or(CallIndex::Absent, CallIndex::Number);
        let repeats = call.id.text().is_some_and(|id| !ids.insert(id.to_owned()));
        if repeats {
            call.id = Str::default();
        }
    }
}

/// Emits images as media. Results of the server's own tools become opaque content.
pub(super) fn media(delta: &WireDelta<'_>, format: &Text, push: &mut impl FnMut(DeltaKind)) {
    for image in list_of(delta.images) {
        push(match media_of("image_url", &image) {
            Some(media) => DeltaKind::Media(Box::new(media.into())),
            None => DeltaKind::Opaque(Box::new(Opaque::new(format.clone(), "image", image))),
        });
    }
    for run in list_of(delta.executed_tools) {
        push(DeltaKind::Opaque(Box::new(Opaque::new(format.clone(), "executed_tools", run))));
    }
}

/// Returns the fields of a call that this crate does not know, in the form of a call.
pub(super) fn extras_of(
    mut call: Map<String, Value>,
    function: Map<String, Value>,
    format: &Text,
) -> Option<ProviderData> {
    if !function.is_empty() {
        call.insert("function".to_owned(), Value::Object(function));
    }
    (!call.is_empty()).then(|| ProviderData::new(format.clone(), Value::Object(call)))
}

/// Returns the media of a part of this kind: at a URL, or those that a `data:` URL holds.
pub(super) fn media_of(kind: &str, part: &Value) -> Option<Media> {
    let mime = match kind {
        "image_url" => "image/*",
        "audio_url" => "audio/*",
        "video_url" => "video/*",
        _ => return None,
    };
    let url = part.get(kind).unwrap_or(part);
    let url = url.as_str().or_else(|| url.get("url")?.as_str())?;
    let inline = url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
    match inline {
        Some((mime, data)) => Some(Media::from_bytes(mime, STANDARD.decode(data).ok()?)),
        None => Some(Media::from_url(mime, Text::from(url))),
    }
}

/// Returns a citation in the text, in the form of OpenAI and OpenRouter.
pub(super) fn citation_of(annotation: &Value) -> Option<Citation> {
    let source = annotation.get("url_citation")?;
    let word =
        |key: &str| source.get(key).and_then(Value::as_str).filter(|word| !word.is_empty()).map(Text::from);
    let mut citation = Citation::default();
    citation.url = word("url");
    citation.title = word("title");
    citation.quote = word("content");
    Some(citation)
}

/// Returns the joined texts of raw reasoning details.
pub(super) fn text_of_details(details: &[Value]) -> String {
    let text_of =
        |detail: &Value| detail.get("text").or_else(|| detail.get("summary"))?.as_str().map(str::to_owned);
    details.iter().filter_map(text_of).collect()
}
