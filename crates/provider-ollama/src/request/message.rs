//! Messages on the wire, written once and kept.

use std::borrow::Cow;

use advisor_core::{
    Block, BlockContent, BlockKind, Message, MessageContent, MessageList, Part, Result, ToolCall, ToolResult,
};
use bytes::Bytes;
use provider_http::exchange::BodyBuffer;
use provider_http::json::arguments;
use provider_http::media::{inline, left_out};
use provider_http::written::{Growth, unwritable, written_list, written_message};
use provider_http::{joined_text, parts_of_result};
use serde::Serialize;
use serde_json::value::RawValue;

/// The body up to its first message.
const BEGINNING: &[u8] = b"{\"messages\":[";

/// The form of a message, which depends on the message alone.
#[derive(Clone, PartialEq)]
struct ChatForm;

/// Returns the pieces of a body up to the end of its messages. A longer list continues those of its beginning.
pub(super) fn pieces(messages: &MessageList) -> Result<Vec<Bytes>> {
    let grown = written_list(messages, &ChatForm, BodyBuffer::default, |list, message| {
        let separator = if list.is_empty() { BEGINNING } else { b"," };
        let write = || json_of(message).map(Bytes::from).map_err(unwritable);
        list.push(separator, &written_message(message, &ChatForm, write)?);
        Ok(Growth::Added)
    });
    let pieces = grown?.unwrap_or_default().into_pieces();
    Ok(if pieces.is_empty() { vec![Bytes::from_static(BEGINNING)] } else { pieces })
}

fn json_of(message: &Message) -> serde_json::Result<Vec<u8>> {
    let sent = match message.content() {
        MessageContent::System(text) => {
            Sent { role: "system", content: Cow::Borrowed(text), ..Sent::default() }
        }
        MessageContent::User(parts) => Sent { role: "user", ..Sent::from_parts(parts) },
        MessageContent::Assistant(blocks) => Sent::from_blocks(blocks)?,
        MessageContent::Tool(result) => {
            return serde_json::to_vec(&Sent::from_result(result, &parts_of_result(result)));
        }
        // A kind of message newer than this crate is sent as its text.
        _ => Sent { role: "user", content: Cow::Owned(message.text()), ..Sent::default() },
    };
    serde_json::to_vec(&sent)
}

#[derive(Default, Serialize)]
struct Sent<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    thinking: Cow<'a, str>,
    /// Images in base64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    /// Read by versions of late 2025 and later; others match results by name and order.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    /// As the model wrote them. The server renders them into the prompt, and another order of keys would miss its cache.
    arguments: Box<RawValue>,
}

impl<'a> Sent<'a> {
    fn from_parts(parts: &'a [Part]) -> Self {
        let texts: Vec<_> = parts.iter().filter_map(text_or_note).collect();
        Self { content: joined(texts), images: parts.iter().filter_map(image).collect(), ..Self::default() }
    }

    fn from_result(result: &'a ToolResult, parts: &'a [Part]) -> Self {
        let (tool_name, tool_call_id) = (Some(result.name.as_str()), Some(result.call_id.as_str()));
        Self { role: "tool", tool_name, tool_call_id, ..Self::from_parts(parts) }
    }

    /// Blocks of other providers are sent by their content; signatures and other data are left out. A refusal is sent
    /// as text, as the user saw it.
    fn from_blocks(blocks: &'a [Block]) -> serde_json::Result<Self> {
        let calls = blocks.iter().filter_map(Block::as_tool_call).map(Call::new);
        let tool_calls = calls.collect::<serde_json::Result<Vec<_>>>()?;
        let text = joined_text(blocks);
        let is_silent = tool_calls.is_empty() && text.trim().is_empty();
        let content =
            if is_silent { note(blocks).map_or(Cow::Owned(text), Cow::Borrowed) } else { Cow::Owned(text) };
        let reasoning = |block: &'a Block| block.content().text_of(BlockKind::Reasoning);
        let thinking = Cow::Owned(blocks.iter().filter_map(reasoning).collect());
        Ok(Self { role: "assistant", content, thinking, tool_calls, ..Self::default() })
    }
}

impl<'a> Call<'a> {
    fn new(call: &'a ToolCall) -> serde_json::Result<Self> {
        let arguments = RawValue::from_string(arguments::as_text(&call.arguments).into_owned())?;
        Ok(Self { id: &call.id, function: Function { name: &call.name, arguments } })
    }
}

/// Returns a note for an answer without text, so that the model sees that it answered.
fn note(blocks: &[Block]) -> Option<&'static str> {
    blocks.iter().find_map(|block| match block.content() {
        BlockContent::Media(_) => Some("[media that cannot be shown here]"),
        BlockContent::Opaque(_) => Some("[content that cannot be shown here]"),
        _ => None,
    })
}

fn joined(mut texts: Vec<Cow<'_, str>>) -> Cow<'_, str> {
    match texts.len() {
        0 | 1 => texts.pop().unwrap_or_default(),
        _ => Cow::Owned(texts.join("\n")),
    }
}

/// Returns the text of a part, or a note for a part that cannot be sent; `None` for an image that can.
fn text_or_note(part: &Part) -> Option<Cow<'_, str>> {
    match part {
        Part::Text(text) => Some(Cow::Borrowed(text)),
        Part::Json(value) => Some(Cow::Owned(value.to_string())),
        Part::Image(_) if image(part).is_some() => None,
        Part::Image(media) => {
            Some(Cow::Owned(left_out(media, "Ollama takes the bytes of an image, and no address")))
        }
        Part::Audio(media) | Part::Video(media) | Part::File(media) => {
            Some(Cow::Owned(left_out(media, "Ollama takes only text and images")))
        }
        _ => Some(Cow::Borrowed("[part of an unknown kind left out]")),
    }
}

/// Returns the bytes of an image in base64, also those of a `data:` URL.
fn image(part: &Part) -> Option<Cow<'_, str>> {
    let Part::Image(media) = part else { return None };
    inline(media).map(|(_, data)| data).filter(|data| !data.is_empty())
}
