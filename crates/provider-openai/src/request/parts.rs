//! User content and tool results, on the wire.

use std::borrow::Cow;

use advisor_core::{Media, MediaSource, Part};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provider_http::media::{inline, note, text_of};
use serde::Serialize;
use serde_json::Value;

/// The content of a message: a string if it is text only, as the strictest servers require.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

const TEXT_ONLY: &str = "this server takes only text from tools";

/// Returns the content of a user message.
pub(super) fn user_content(parts: &[Part]) -> Content<'_> {
    match joined_text(parts) {
        Some(text) => Content::Text(text),
        None => Content::Parts(parts.iter().map(on_the_wire).collect()),
    }
}

/// Returns the text of parts that are text only; `None` if there are others.
pub(crate) fn joined_text(parts: &[Part]) -> Option<Cow<'_, str>> {
    parts.iter().map(text_of).collect::<Option<Vec<_>>>().map(joined)
}

/// Returns the content of a tool result. If the server takes only text, a note replaces media.
pub(super) fn tool_content(parts: &[Part], sends_media: bool) -> Content<'_> {
    if sends_media {
        return user_content(parts);
    }
    let texts = parts.iter().map(|part| text_of(part).unwrap_or_else(|| note(part, TEXT_ONLY)));
    Content::Text(joined(texts.collect()))
}

fn joined(mut texts: Vec<Cow<'_, str>>) -> Cow<'_, str> {
    match texts.len() {
        0 | 1 => texts.pop().unwrap_or_default(),
        _ => Cow::Owned(texts.join("\n")),
    }
}

fn on_the_wire(part: &Part) -> Value {
    if let Some(text) = text_of(part) {
        return wire_part("text", text.into());
    }
    match part {
        Part::Image(media) | Part::Audio(media) if matches!(media.source, MediaSource::ProviderFile(_)) => {
            file(media)
        }
        Part::Image(media) => wire_part("image_url", object([("url", url(media).into())])),
        Part::Audio(media) => audio(media),
        Part::Video(media) => wire_part("video_url", object([("url", url(media).into())])),
        Part::File(media) => file(media),
        other => wire_part("text", note(other, TEXT_ONLY).into()),
    }
}

fn audio(media: &Media) -> Value {
    match inline(media) {
        Some((mime, data)) => {
            let fields = [("data", data.into()), ("format", audio_format(mime).into())];
            wire_part("input_audio", object(fields))
        }
        None => wire_part("audio_url", object([("url", url(media).into())])),
    }
}

/// Returns the address of the media, or a `data:` URL that holds the bytes.
pub(crate) fn url(media: &Media) -> Cow<'_, str> {
    match &media.source {
        MediaSource::Url(url) => Cow::Borrowed(url),
        MediaSource::Bytes(bytes) => {
            Cow::Owned(format!("data:{};base64,{}", media.mime, STANDARD.encode(bytes)))
        }
        MediaSource::ProviderFile(id) => Cow::Borrowed(id),
        _ => Cow::Borrowed(""),
    }
}

fn file(media: &Media) -> Value {
    let file = match &media.source {
        MediaSource::ProviderFile(id) => object([("file_id", id.as_str().into())]),
        _ => {
            let name = media.name.as_deref().unwrap_or("file");
            object([("filename", name.into()), ("file_data", url(media).into())])
        }
    };
    wire_part("file", file)
}

fn wire_part(kind: &str, content: Value) -> Value {
    object([("type", kind.into()), (kind, content)])
}

/// Makes an object of values that are moved: `json!` would copy an image once more.
pub(crate) fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    fields.into_iter().collect()
}

/// Returns the name of a format: `mp3` for `audio/mpeg`, otherwise mostly the subtype.
fn audio_format(mime: &str) -> &str {
    match mime {
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        other => other.strip_prefix("audio/").unwrap_or(other),
    }
}
