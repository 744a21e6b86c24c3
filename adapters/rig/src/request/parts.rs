//! User content and tool results.

use std::borrow::Cow;

use advisor_core::{Media, MediaSource, Part};
use provider_http::media::{inline, note, text_of};
use rig_core::message::{
    Audio, AudioMediaType, Document, DocumentMediaType, DocumentSourceKind, Image, ImageMediaType, MimeType,
    ToolResultContent, UserContent, Video, VideoMediaType,
};

/// Returns the content of a user message.
pub(super) fn of_user(parts: &[Part]) -> Vec<UserContent> {
    parts.iter().map(|part| text_of(part).map_or_else(|| media(part), UserContent::text)).collect()
}

/// Returns the content of a tool result. A note replaces media other than images.
pub(super) fn of_result(parts: &[Part]) -> Vec<ToolResultContent> {
    let content = |part: &Part| match (part, text_of(part)) {
        (Part::Json(value), _) => ToolResultContent::json(value.clone()),
        (_, Some(text)) => ToolResultContent::text(text),
        (Part::Image(media), None) => {
            image(media).map_or_else(|| ToolResultContent::text(unsupported(part)), ToolResultContent::Image)
        }
        _ => ToolResultContent::text(unsupported(part)),
    };
    let content: Vec<_> = parts.iter().map(content).collect();
    if content.is_empty() { vec![ToolResultContent::text("")] } else { content }
}

fn unsupported(part: &Part) -> Cow<'static, str> {
    note(part, "rig has no field for it")
}

fn media(part: &Part) -> UserContent {
    let content = match part {
        Part::Image(media) => image(media).map(UserContent::Image),
        Part::Audio(media) => source(media).map(|(mime, data)| {
            UserContent::Audio(Audio { data, media_type: AudioMediaType::from_mime_type(mime) })
        }),
        Part::Video(media) => source(media).map(|(mime, data)| {
            let media_type = VideoMediaType::from_mime_type(mime);
            UserContent::Video(Video { data, media_type, additional_params: None })
        }),
        Part::File(media) => source(media).map(|(mime, data)| {
            let media_type = DocumentMediaType::from_mime_type(mime);
            UserContent::Document(Document { data, media_type, additional_params: None })
        }),
        _ => None,
    };
    content.unwrap_or_else(|| UserContent::text(unsupported(part)))
}

fn image(media: &Media) -> Option<Image> {
    let (mime, data) = source(media)?;
    Some(Image { data, media_type: ImageMediaType::from_mime_type(mime), ..Image::default() })
}

/// Returns the type and the place of media.
fn source(media: &Media) -> Option<(&str, DocumentSourceKind)> {
    if let Some((mime, data)) = inline(media) {
        return Some((mime, DocumentSourceKind::base64(data)));
    }
    match &media.source {
        MediaSource::Url(url) => Some((&media.mime, DocumentSourceKind::url(url.as_str()))),
        MediaSource::ProviderFile(id) => Some((&media.mime, DocumentSourceKind::file_id(id.as_str()))),
        _ => None,
    }
}
