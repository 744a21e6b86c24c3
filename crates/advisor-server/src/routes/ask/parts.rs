//! Reads texts, pictures and files of a message, in the forms of all protocols.

use advisor_core::{Media, Part};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::refusal::Refusal;

/// The media type of a file at an address, if the protocol does not have it.
const ANY_FILE: &str = "application/octet-stream";

/// The characters of a type in a refusal.
const LONGEST_TYPE: usize = 40;

/// Reads a part of a message of the user. Each type has one meaning in all protocols.
///
/// Returns `None` for an application's own data, which is not for the model.
///
/// # Errors
/// For a part that cannot be passed on, such as one with the id of a file at a provider.
pub(super) fn read_part(part: &Value) -> Result<Option<Part>, Refusal> {
    let kind = text(part, "/type").unwrap_or("text");
    let read = match kind {
        own if own.starts_with("data-") => return Ok(None),
        "text" | "input_text" | "output_text" => text(part, "/text").map(Part::from),
        // Chat Completions.
        "image_url" => text(part, "/image_url/url").and_then(|url| from_url("image/*", url)).map(part_of),
        "input_audio" => audio(part),
        "file" if part.get("file").is_some() => file(part, "/file/file_data", "/file/filename"),
        // The AI SDK.
        "file" => file(part, "/url", "/filename"),
        // Responses.
        "input_image" => text(part, "/image_url").and_then(|url| from_url("image/*", url)).map(part_of),
        "input_file" => {
            file(part, "/file_data", "/filename").or_else(|| file(part, "/file_url", "/filename"))
        }
        // Messages and AG-UI.
        "image" => sourced(part, "image/*"),
        "audio" => sourced(part, "audio/*"),
        "video" => sourced(part, "video/*"),
        "document" => sourced(part, ANY_FILE),
        _ => None,
    };
    read.map(Some).ok_or_else(|| {
        let kind: String = kind.chars().take(LONGEST_TYPE).collect();
        Refusal::bad_request(format!(
            "a part `{kind}` of the message cannot be passed on: media need bytes in base64, or an address on the web"
        ))
    })
}

fn text<'a>(part: &'a Value, place: &str) -> Option<&'a str> {
    part.pointer(place)?.as_str()
}

/// Returns the file at a URL, with its name.
fn file(part: &Value, url: &str, name: &str) -> Option<Part> {
    let media = from_url(text(part, "/mediaType").unwrap_or(ANY_FILE), text(part, url)?)?;
    Some(part_of(named(media, text(part, name))))
}

fn audio(part: &Value) -> Option<Part> {
    let mime = match text(part, "/input_audio/format")? {
        "mp3" => "audio/mpeg".to_owned(),
        format if format.bytes().all(|byte| byte.is_ascii_alphanumeric()) => format!("audio/{format}"),
        _ => return None,
    };
    from_base64(&mime, text(part, "/input_audio/data")?).map(Part::Audio)
}

/// Returns the media of a part with a `source`. The type of the source differs between the protocols.
fn sourced(part: &Value, mime: &str) -> Option<Part> {
    let field = |name: &str| text(part, &format!("/source/{name}"));
    let own = field("media_type").or(field("mimeType"));
    let media = match field("type")? {
        "base64" => from_base64(own?, field("data")?),
        "data" => from_base64(own?, field("value")?),
        "text" => Some(Media::from_bytes("text/plain", field("data")?.to_owned())),
        "url" => from_url(own.unwrap_or(mime), field("url").or(field("value"))?),
        _ => None,
    };
    Some(part_of(named(media?, text(part, "/title"))))
}

fn named(media: Media, name: Option<&str>) -> Media {
    match name {
        Some(name) => media.with_name(name),
        None => media,
    }
}

/// Returns the media of a `data:` URL, or of an address on the web, which the provider fetches.
fn from_url(mime: &str, url: &str) -> Option<Media> {
    if let Some(data) = url.strip_prefix("data:") {
        let (head, data) = data.split_once(',')?;
        let own = head.strip_suffix(";base64")?.split(';').next().filter(|own| !own.is_empty());
        return from_base64(own.unwrap_or(mime), data);
    }
    let is_on_the_web = url.starts_with("https://") || url.starts_with("http://");
    is_on_the_web.then(|| Media::from_url(mime, url))
}

fn from_base64(mime: &str, data: &str) -> Option<Media> {
    let bytes = STANDARD.decode(data).ok().filter(|bytes| !bytes.is_empty())?;
    Some(Media::from_bytes(mime, bytes))
}

fn part_of(media: Media) -> Part {
    match media.mime.split('/').next() {
        Some("image") => Part::Image(media),
        Some("audio") => Part::Audio(media),
        Some("video") => Part::Video(media),
        _ => Part::File(media),
    }
}
