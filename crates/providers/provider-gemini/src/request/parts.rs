//! Parts of user content and of tool results: texts and media.

use advisor_core::{Media, MediaSource, Part, ToolResult};
use provider_http::media::{inline, inline_mime, is_empty, note};
use provider_http::names::WireNames;
use provider_http::parts_of_result;
use serde_json::{Map, Value, json};

use super::Form;

/// The types of images that the API reads. A user may try another one, but that of an earlier answer must not make the
/// API refuse the whole conversation.
const IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
/// The keys with a meaning in a response. A result that has one of them is put under `output`.
const KEYS: [&str; 2] = ["output", "error"];

/// Returns a text; `None` if it is empty, since the API refuses that.
pub(super) fn text(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ "text": text }))
}

/// Returns a part of a user message; `None` if it is an empty text.
pub(super) fn of_user(part: &Part) -> Option<Value> {
    media_of(part).map(field).or_else(|| text(&words(part)))
}

/// Returns the part for a result, and its media beside it where the model does not take them inside.
pub(super) fn of_result(result: &ToolResult, form: &Form, names: &WireNames) -> Vec<Value> {
    let mut function = Map::new();
    if form.sends_call_ids {
        function.insert("id".to_owned(), names.call_id(&result.call_id).into());
    }
    function.insert("name".to_owned(), names.tool(&result.name).into());
    function.insert("response".to_owned(), response(result));
    let mut media: Vec<Value> = result.parts.iter().filter_map(media_of).map(field).collect();
    if !form.is_before_gemini_3 && !media.is_empty() {
        function.insert("parts".to_owned(), Value::Array(std::mem::take(&mut media)));
    }
    let mut parts = vec![json!({ "functionResponse": function })];
    parts.append(&mut media);
    parts
}

/// Returns the response: a structured result as it is, anything else as `output`, a failure as `error`.
fn response(result: &ToolResult) -> Value {
    if result.is_error {
        return json!({ "error": lines(&parts_of_result(result)) });
    }
    let mut said = result.parts.iter().filter(|part| media_of(part).is_none());
    match (said.next(), said.next()) {
        (Some(Part::Json(Value::Object(fields))), None)
            if !KEYS.iter().any(|key| fields.contains_key(*key)) =>
        {
            Value::Object(fields.clone())
        }
        (Some(Part::Json(value)), None) => json!({ "output": value }),
        _ => json!({ "output": lines(&result.parts) }),
    }
}

fn lines(parts: &[Part]) -> String {
    let said = parts.iter().filter(|part| media_of(part).is_none());
    said.map(words).collect::<Vec<_>>().join("\n")
}

/// Returns the text of a part, or a note in place of what the API refuses.
fn words(part: &Part) -> String {
    match part {
        Part::Text(text) => text.to_string(),
        Part::Json(value) => value.to_string(),
        other => note(other, "its type is unknown").into_owned(),
    }
}

/// Returns the media of a part that the API takes.
fn media_of(part: &Part) -> Option<&Media> {
    match part {
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
            Some(media).filter(|media| is_sendable(media))
        }
        _ => None,
    }
}

fn is_sendable(media: &Media) -> bool {
    !is_empty(media) && inline_mime(media).is_none_or(is_known)
}

/// Returns the part for media of an earlier answer, or for a note in its place.
pub(super) fn of_answer(media: &Media) -> Value {
    let is_unreadable = |mime: &str| mime.starts_with("image/") && !IMAGES.contains(&mime);
    let left_out = |reason| json!({ "text": note(&Part::File(media.clone()), reason) });
    if !is_sendable(media) {
        left_out("its type is unknown")
    } else if inline_mime(media).is_some_and(is_unreadable) {
        left_out("Gemini does not read this type")
    } else {
        field(media)
    }
}

/// Checks whether a type says what the bytes are.
fn is_known(mime: &str) -> bool {
    !mime.contains('*') && mime != "application/octet-stream"
}

/// Returns the part with the bytes of media, or with their address. A file of the provider is named by its URI.
fn field(media: &Media) -> Value {
    // Values are moved: `json!` would copy an image once more.
    let object = |fields: Vec<(&str, Value)>| Value::from_iter(fields);
    if let Some((mime, data)) = inline(media) {
        let data = object(vec![("mimeType", mime.into()), ("data", data.into_owned().into())]);
        return object(vec![("inlineData", data)]);
    }
    match &media.source {
        MediaSource::Url(url) | MediaSource::ProviderFile(url) => {
            let mut file = vec![("fileUri", url.as_str().into())];
            if is_known(&media.mime) {
                file.push(("mimeType", media.mime.as_str().into()));
            }
            object(vec![("fileData", object(file))])
        }
        _ => json!({ "text": "[media of an unknown kind]" }),
    }
}
