//! `tool_output`: the content of a result as parts, within its bound.

use advisor_core::json::{MOST_VALUES, values};
use advisor_core::{Media, Part, ToolError, ToolOutput};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde::Deserialize;
use serde_json::{Value, json};

use super::failure;
use super::server::McpServer;

/// The bytes that the content of a result may have. A message as a whole may have 16 MiB.
const MOST_BYTES: usize = 4 << 20;

/// The parts that a result may have.
const MOST_PARTS: usize = 1_000;

/// Returns the result of a call for the model.
pub(super) fn tool_output(result: CallToolResult, server: &McpServer) -> Result<ToolOutput, ToolError> {
    let size = size(&result);
    if size > MOST_BYTES {
        let text =
            format!("the tool has run, but its result of {size} bytes is larger than {MOST_BYTES} bytes");
        return Err(ToolError::new(text));
    }
    let blocks = result.content.len();
    if blocks > MOST_PARTS {
        let text = format!("the tool has run, but its result of {blocks} parts has more than {MOST_PARTS}");
        return Err(ToolError::new(text));
    }
    if result.is_error == Some(true) {
        return Err(ToolError::new(failure::shown(server, &error_text(&result))));
    }
    let structured = result.structured_content;
    let contents = result.content.into_iter().filter(|block| !repeats(block, structured.as_ref())).map(part);
    let parts: Vec<_> = structured.clone().map(Part::Json).into_iter().chain(contents).collect();
    // Without a part, the model would not learn that the call has succeeded.
    Ok(if parts.is_empty() { empty() } else { parts.into() })
}

/// Returns the result of a call that succeeded without content.
pub(super) fn empty() -> ToolOutput {
    ToolOutput::from("[the tool has run; its result has no content]")
}

/// Reads a result with content of kinds that this version of the protocol does not have. They are named in its place, and
/// the rest is kept.
pub(super) fn with_unknown_kinds(mut result: Value) -> Option<CallToolResult> {
    for block in result.get_mut("content")?.as_array_mut()? {
        if ContentBlock::deserialize(&*block).is_err() {
            *block = json!({"type": "text", "text": UNREADABLE});
        }
    }
    serde_json::from_value(result).ok()
}

/// Returns the bytes of the content, as the server sent it.
fn size(result: &CallToolResult) -> usize {
    let structured = result.structured_content.as_ref().map_or(0, |value| value.to_string().len());
    let blocks = result.content.iter().map(|block| match block {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        other => serde_json::to_string(other).map_or(0, |json| json.len()),
    });
    blocks.fold(structured, usize::saturating_add)
}

/// Checks whether a text is the structured result once more, for clients that know only texts.
fn repeats(block: &ContentBlock, structured: Option<&Value>) -> bool {
    let ContentBlock::Text(text) = block else { return false };
    // Of a text of many values, the parsed form would be much larger.
    let Some(value) = structured.filter(|_| values(text.text.as_bytes()) <= MOST_VALUES) else {
        return false;
    };
    serde_json::from_str::<Value>(&text.text).is_ok_and(|read| read == *value)
}

fn part(block: ContentBlock) -> Part {
    match block {
        ContentBlock::Text(text) => text.text.into(),
        ContentBlock::Image(image) => {
            media(&image.data, &image.mime_type, "image/").map_or_else(unreadable, Part::Image)
        }
        ContentBlock::Audio(audio) => {
            media(&audio.data, &audio.mime_type, "audio/").map_or_else(unreadable, Part::Audio)
        }
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text.into(),
            ResourceContents::BlobResourceContents { blob, mime_type, .. } => {
                let mime = mime_type.unwrap_or_else(|| String::from("application/octet-stream"));
                media(&blob, &mime, "").map_or_else(unreadable, Part::File)
            }
            _ => unreadable(),
        },
        // The address of a link is text for the model. As media, the provider would fetch it.
        ContentBlock::ResourceLink(link) => {
            Part::Json(json!({ "uri": link.uri, "name": link.name, "description": link.description }))
        }
        _ => unreadable(),
    }
}

/// What stands in place of content that cannot be read.
const UNREADABLE: &str = "[content that cannot be read]";

fn unreadable() -> Part {
    UNREADABLE.into()
}

/// Returns media if its bytes can be decoded and its type is of this kind.
fn media(data: &str, mime: &str, kind: &str) -> Option<Media> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '+' | '-' | '_');
    let is_type =
        mime.starts_with(kind) && mime.len() <= 127 && mime.chars().all(is_token) && mime.contains('/');
    let bytes = STANDARD.decode(data).ok()?;
    is_type.then(|| Media::from_bytes(mime, bytes))
}

/// Returns the texts of an error result, or its structured result.
fn error_text(result: &CallToolResult) -> String {
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => Some(text.text.clone()),
        _ => None,
    };
    let texts: Vec<_> = result.content.iter().filter_map(text).collect();
    match &result.structured_content {
        Some(value) if texts.is_empty() => value.to_string(),
        _ => texts.join("\n"),
    }
}
