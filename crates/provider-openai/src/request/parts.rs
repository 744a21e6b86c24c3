//! User content and tool results, on the wire.

use std::borrow::Cow;

use advisor_core::{Media, MediaSource, Part};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// The content of a message: a string if it is text only, as the strictest servers require.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WirePart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: Url<'a> },
    InputAudio { input_audio: Audio<'a> },
    AudioUrl { audio_url: Url<'a> },
    VideoUrl { video_url: Url<'a> },
    File { file: File<'a> },
}

#[derive(Serialize)]
pub(super) struct Url<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
pub(super) struct Audio<'a> {
    data: String,
    format: &'a str,
}

#[derive(Default, Serialize)]
pub(super) struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
}

/// Returns the content of a user message.
pub(super) fn user_content(parts: &[Part]) -> Content<'_> {
    match parts.iter().map(text).collect::<Option<Vec<_>>>() {
        Some(texts) => Content::Text(joined(texts)),
        None => Content::Parts(parts.iter().map(on_the_wire).collect()),
    }
}

/// Returns the content of a tool result. For servers that take only text, a note replaces media.
pub(super) fn tool_content(parts: &[Part], media: bool) -> Content<'_> {
    if media {
        return user_content(parts);
    }
    Content::Text(joined(parts.iter().map(|part| text(part).unwrap_or_else(|| note(part))).collect()))
}

fn joined(mut texts: Vec<Cow<'_, str>>) -> Cow<'_, str> {
    match texts.len() {
        0 | 1 => texts.pop().unwrap_or_default(),
        _ => Cow::Owned(texts.join("\n")),
    }
}

fn text(part: &Part) -> Option<Cow<'_, str>> {
    match part {
        Part::Text(text) => Some(Cow::Borrowed(text)),
        Part::Json(value) => Some(Cow::Owned(value.to_string())),
        _ => None,
    }
}

fn note(part: &Part) -> Cow<'static, str> {
    let kind = match part {
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
            media.mime.as_str()
        }
        _ => "part of an unknown kind",
    };
    Cow::Owned(format!("[{kind} left out: this server takes only text from tools]"))
}

fn on_the_wire(part: &Part) -> WirePart<'_> {
    match part {
        Part::Image(media) => match &media.source {
            MediaSource::ProviderFile(_) => file(media),
            _ => WirePart::ImageUrl { image_url: Url { url: url(media) } },
        },
        Part::Audio(media) => match &media.source {
            MediaSource::Bytes(bytes) => WirePart::InputAudio {
                input_audio: Audio { data: STANDARD.encode(bytes), format: audio_format(&media.mime) },
            },
            MediaSource::ProviderFile(_) => file(media),
            _ => WirePart::AudioUrl { audio_url: Url { url: url(media) } },
        },
        Part::Video(media) => WirePart::VideoUrl { video_url: Url { url: url(media) } },
        Part::File(media) => file(media),
        other => WirePart::Text { text: text(other).unwrap_or_else(|| note(other)) },
    }
}

/// Returns the address of the media, or a `data:` URL that holds the bytes.
fn url(media: &Media) -> Cow<'_, str> {
    match &media.source {
        MediaSource::Url(url) => Cow::Borrowed(url),
        MediaSource::Bytes(bytes) => {
            Cow::Owned(format!("data:{};base64,{}", media.mime, STANDARD.encode(bytes)))
        }
        MediaSource::ProviderFile(id) => Cow::Borrowed(id),
        _ => Cow::Borrowed(""),
    }
}

fn file(media: &Media) -> WirePart<'_> {
    let filename = media.name.as_deref();
    let file = match &media.source {
        MediaSource::ProviderFile(id) => File { file_id: Some(id), ..File::default() },
        _ => File { filename: filename.or(Some("file")), file_data: Some(url(media)), file_id: None },
    };
    WirePart::File { file }
}

/// Returns the name of a format: `mp3` for `audio/mpeg`, otherwise mostly the subtype.
fn audio_format(mime: &str) -> &str {
    match mime {
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        other => other.strip_prefix("audio/").unwrap_or(other),
    }
}
