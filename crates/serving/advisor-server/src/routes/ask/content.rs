//! `SentMessage`, `Content`: the messages of a client, and texts, pictures and files in the forms of all protocols.

use advisor_core::{Media, Message, Part, ToolCall, ToolResult};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use crate::refusal::Refusal;

/// A message of a client's list, of any protocol.
#[derive(Debug)]
pub(in crate::routes) enum SentMessage {
    User(Content),
    /// A part of an answer, which the server has in its own memory.
    Answer(SentAnswer),
    Result(SentResult),
    Instructions,
}

/// A part of an answer, as a client has kept it.
#[derive(Debug, Default)]
pub(in crate::routes) struct SentAnswer {
    pub(in crate::routes) text: String,
    /// The ids of its calls.
    pub(in crate::routes) calls: Vec<String>,
    /// Whether it is a message of the assistant, and no other item.
    pub(in crate::routes) is_message: bool,
}

/// A result of a call that the client has run.
#[derive(Debug)]
pub(in crate::routes) struct SentResult {
    pub(in crate::routes) call_id: String,
    pub(in crate::routes) content: Content,
    pub(in crate::routes) is_error: bool,
}

impl SentMessage {
    /// Creates an item of an answer that is no message, with the id of its call.
    pub(in crate::routes) fn item(call: Option<String>) -> Self {
        Self::Answer(SentAnswer { calls: call.into_iter().collect(), ..SentAnswer::default() })
    }

    pub(in crate::routes) fn is_result(&self) -> bool {
        matches!(self, Self::Result(_))
    }

    /// Checks whether it is an answer without calls, as one that greets the user.
    pub(in crate::routes) fn may_greet(&self) -> bool {
        matches!(self, Self::Answer(answer) if answer.is_message && answer.calls.is_empty())
    }
}

impl SentAnswer {
    /// Creates a message of the assistant. Its calls are in a field of their own, or among the parts of its content.
    pub(in crate::routes) fn message(content: &Content, calls: &Value) -> Self {
        let id = |call: &Value| call.get("id").and_then(Value::as_str).map(str::to_owned);
        let is_call = |part: &&Value| {
            part.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("tool_use"))
        };
        let in_parts = content.as_parts().iter().filter(is_call).filter_map(id);
        let calls = calls.as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            text: content.text(),
            calls: calls.iter().filter_map(id).chain(in_parts).collect(),
            is_message: true,
        }
    }
}

impl SentResult {
    /// Creates a result, whose content may also be other JSON than a text or parts.
    pub(in crate::routes) fn new(call_id: String, content: Value) -> Self {
        let content = match content {
            json @ (Value::Object(_) | Value::Number(_) | Value::Bool(_)) => Content::Text(json.to_string()),
            content => content.into(),
        };
        Self { call_id, content, is_error: false }
    }

    pub(super) fn read(self, call: &ToolCall) -> Result<Message, Refusal> {
        if matches!(self.content, Content::Nothing) {
            return Err(Refusal::bad_request("a result has no content"));
        }
        let mut result = ToolResult::new(call, self.content.parts()?);
        result.is_error = self.is_error;
        Ok(Message::tool(result))
    }
}

/// The content of a message: a text, or parts in the forms of the protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged, expecting = "it is a text, or a list of parts")]
pub(in crate::routes) enum Content {
    Text(String),
    Parts(Vec<Value>),
    #[default]
    Nothing,
}

impl From<Value> for Content {
    /// JSON of another form has no place in a message of the user.
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Array(parts) => Self::Parts(parts),
            _ => Self::Nothing,
        }
    }
}

impl Content {
    /// Reads the content of a message of the user. Texts beside one another become one.
    ///
    /// # Errors
    /// For a part that cannot be passed on to the model, with its type.
    pub(in crate::routes) fn read(&self) -> Result<Message, Refusal> {
        self.parts().map(Message::user_parts)
    }

    /// Returns the text, without parts of other kinds.
    fn text(&self) -> String {
        let text = |part: &Value| match part.get("type").and_then(Value::as_str) {
            None | Some("text" | "output_text") => part.get("text")?.as_str().map(str::to_owned),
            _ => None,
        };
        match self {
            Self::Text(text) => text.clone(),
            _ => self.as_parts().iter().filter_map(text).collect(),
        }
    }

    fn as_parts(&self) -> &[Value] {
        match self {
            Self::Parts(parts) => parts,
            _ => &[],
        }
    }

    fn parts(&self) -> Result<Vec<Part>, Refusal> {
        let sent = match self {
            Self::Text(text) => return Ok(vec![text.as_str().into()]),
            Self::Nothing => &[],
            Self::Parts(parts) => parts.as_slice(),
        };
        let (mut parts, mut text) = (Vec::new(), String::new());
        for part in sent.iter().map(read_part) {
            match part? {
                Some(Part::Text(piece)) => text.push_str(&piece),
                Some(media) => {
                    parts.extend(take(&mut text));
                    parts.push(media);
                }
                None => {}
            }
        }
        parts.extend(take(&mut text));
        Ok(parts)
    }
}

/// Takes a text as a part, unless it is empty.
fn take(text: &mut String) -> Option<Part> {
    Some(std::mem::take(text)).filter(|text| !text.is_empty()).map(Part::from)
}

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
