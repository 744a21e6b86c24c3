//! Media in requests, for several formats.

use std::borrow::Cow;

use advisor_core::{Media, MediaSource, Part};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Returns the type and the base64 text of media whose bytes are sent with the request: given as bytes, or inside a
/// `data:` URL. `None` for media at any other place, and for a `data:` URL without base64.
///
/// A `data:` URL that names a type takes precedence over the type of the media. Whether its text is valid base64 is
/// not checked.
///
/// # Example
/// ```
/// use advisor_core::Media;
/// use provider_http::media::inline;
///
/// let bytes = Media::from_bytes("image/png", vec![1, 2, 3]);
/// assert_eq!(inline(&bytes), Some(("image/png", "AQID".into())));
/// let url = Media::from_url("image/*", "data:image/png;base64,AQID");
/// assert_eq!(inline(&url), Some(("image/png", "AQID".into())));
/// assert_eq!(inline(&Media::from_url("image/png", "https://example.org/a.png")), None);
/// ```
#[must_use]
pub fn inline(media: &Media) -> Option<(&str, Cow<'_, str>)> {
    let base64 = match &media.source {
        MediaSource::Bytes(bytes) => Cow::Owned(STANDARD.encode(bytes)),
        MediaSource::Url(url) => Cow::Borrowed(data_url(url)?.1),
        _ => return None,
    };
    Some((inline_mime(media)?, base64))
}

/// Returns the type of media whose bytes are sent with the request, as [`inline`] does.
#[must_use]
pub fn inline_mime(media: &Media) -> Option<&str> {
    match &media.source {
        MediaSource::Bytes(_) => Some(&media.mime),
        MediaSource::Url(url) => {
            Some(data_url(url)?.0).map(|mime| if mime.is_empty() { &media.mime } else { mime })
        }
        _ => None,
    }
}

/// Checks whether media have neither bytes nor an address. No server accepts such media.
#[must_use]
pub fn is_empty(media: &Media) -> bool {
    match &media.source {
        MediaSource::Bytes(bytes) => bytes.is_empty(),
        MediaSource::Url(url) => {
            url.trim().is_empty() || data_url(url).is_some_and(|(_, data)| data.is_empty())
        }
        MediaSource::ProviderFile(id) => id.trim().is_empty(),
        _ => false,
    }
}

/// Returns the text of a part, or the [note] in place of media that are empty; `None` for other media.
///
/// ```
/// use advisor_core::{Media, Part};
/// use provider_http::media::text_of;
///
/// assert_eq!(text_of(&Part::Json(serde_json::json!([1]))).as_deref(), Some("[1]"));
/// assert!(text_of(&Part::Image(Media::from_url("image/png", "https://example.org/a.png"))).is_none());
/// ```
#[must_use]
pub fn text_of(part: &Part) -> Option<Cow<'_, str>> {
    match part {
        Part::Text(text) => Some(Cow::Borrowed(text)),
        Part::Json(value) => Some(Cow::Owned(value.to_string())),
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media)
            if !is_empty(media) =>
        {
            None
        }
        _ => Some(note(part, "")),
    }
}

/// Returns the note for the model in place of a part that is not sent, with the `reason`.
///
/// ```
/// use advisor_core::{Media, Part};
/// use provider_http::media::note;
///
/// let video = Part::Video(Media::from_url("video/mp4", "https://example.org/a.mp4"));
/// assert_eq!(note(&video, "it is too long"), "[video/mp4 left out: it is too long]");
/// assert_eq!(note(&Part::Image(Media::from_url("image/png", "")), "not taken"), "[image/png left out: it is empty]");
/// ```
#[must_use]
pub fn note(part: &Part, reason: &str) -> Cow<'static, str> {
    match part {
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
            let reason = if is_empty(media) { "it is empty" } else { reason };
            Cow::Owned(format!("[{} left out: {reason}]", media.mime))
        }
        _ => Cow::Borrowed("[part of an unknown kind left out]"),
    }
}

/// Returns the text in place of media of an answer, for an API to which they cannot go back. The model must see that they
/// were there.
///
/// ```
/// use advisor_core::Media;
/// use provider_http::media::stand_in;
///
/// assert_eq!(stand_in(&Media::from_url("image/*", "https://example.org/a")), "[image]");
/// ```
#[must_use]
pub fn stand_in(media: &Media) -> &'static str {
    match media.mime.split('/').next() {
        Some("image") => "[image]",
        Some("audio") => "[audio]",
        Some("video") => "[video]",
        _ => "[file]",
    }
}

/// Splits a `data:` URL into its type, without parameters, and its base64 text.
fn data_url(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once(':')?;
    let (kind, data) = rest.split_once(',')?;
    let kind = kind.strip_suffix(";base64").filter(|_| scheme.eq_ignore_ascii_case("data"))?;
    Some((kind.split(';').next().unwrap_or_default(), data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls_are_taken_apart() {
        for (url, expected) in [
            ("data:image/png;base64,AQID", Some(("image/png", "AQID"))),
            ("DATA:image/png;charset=utf-8;base64,AQID", Some(("image/png", "AQID"))),
            ("data:;base64,AQID", Some(("image/jpeg", "AQID"))),
            ("data:image/png;base64,", Some(("image/png", ""))),
            ("data:image/svg+xml,%3Csvg", None),
            ("data:image/png;base64", None),
            ("https://example.org/;base64,AQID", None),
            ("", None),
        ] {
            let media = Media::from_url("image/jpeg", url);
            let expected = expected.map(|(mime, data)| (mime, Cow::Borrowed(data)));
            assert_eq!(inline_mime(&media), expected.as_ref().map(|(mime, _)| *mime), "{url}");
            assert_eq!(inline(&media), expected, "{url}");
        }
    }

    #[test]
    fn empty_media_are_found() {
        let stored = |id: &str| {
            let mut media = Media::from_url("image/png", "");
            media.source = MediaSource::ProviderFile(id.into());
            media
        };
        for (media, empty) in [
            (Media::from_bytes("image/png", vec![]), true),
            (Media::from_bytes("image/png", vec![1]), false),
            (Media::from_url("image/png", " "), true),
            (Media::from_url("image/png", "data:image/png;base64,"), true),
            (Media::from_url("image/png", "data:image/png;base64,AQID"), false),
            (Media::from_url("image/png", "https://example.org"), false),
            (stored(""), true),
            (stored("file_1"), false),
        ] {
            assert_eq!(is_empty(&media), empty, "{media:?}");
        }
    }
}
