//! The body of a request to `/api/chat`: each message is written once, and kept with the message.
//!
//! Messages are sent one for one, in their order.

mod options;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use advisor_core::{
    Block, BlockContent, BlockKind, ChatRequest, Message, MessageContent, Part, Result, ToolCall, ToolResult,
};
use bytes::Bytes;
use provider_http::json::arguments;
use provider_http::media::{inline, note, stand_in};
use provider_http::names::{IdRule, NameRule, WireNames};
use provider_http::written::{self, entries, unwritable, written_message};
use provider_http::{joined_text, parts_of_result};
use serde::Serialize;
use serde_json::value::RawValue;

/// The form of a message, which depends on the message alone.
#[derive(Clone, PartialEq)]
struct ChatForm;

/// Writes the body of `request` to a model. Returns it with its tool names, which are sent as they are.
///
/// # Errors
/// If the request cannot be written as JSON.
pub(crate) fn body(request: &ChatRequest, model: &str, streaming: bool) -> Result<(Bytes, WireNames)> {
    let is_own = |field: &str| request.options.extra.contains_key(field);
    let names = WireNames::new(request, IdRule::Any, NameRule::Any, &[]);
    let write = |message| written_message(message, &names, &ChatForm, || written(message));
    let messages = || request.messages.iter().map(write).collect::<Result<Vec<_>>>();
    let messages = (!is_own("messages")).then(messages).transpose()?;
    let tools = options::tools(request, &names)?.filter(|_| !is_own("tools")).map(|tools| vec![tools]);
    let fields = options::write(request, model, streaming);
    Ok((written::body(&[("messages", messages), ("tools", tools)], &fields)?, names))
}

fn written(message: &Message) -> Result<Bytes> {
    let sent = match message.content() {
        MessageContent::System(text) => {
            Sent { role: "system", content: Cow::Borrowed(text), ..Sent::default() }
        }
        MessageContent::User(parts) => Sent { role: "user", ..Sent::from_parts(parts) },
        MessageContent::Assistant(blocks) => Sent::from_blocks(blocks).map_err(unwritable)?,
        MessageContent::Tool(result) => {
            return entries([Sent::from_result(result, &parts_of_result(result))]);
        }
        // A kind of message newer than this crate is sent as its text.
        _ => Sent { role: "user", content: Cow::Owned(message.text()), ..Sent::default() },
    };
    entries([sent])
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
        let content = if is_silent {
            answer_note(blocks).map_or(Cow::Owned(text), Cow::Borrowed)
        } else {
            Cow::Owned(text)
        };
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
fn answer_note(blocks: &[Block]) -> Option<&'static str> {
    blocks.iter().find_map(|block| match block.content() {
        BlockContent::Media(media) => Some(stand_in(media)),
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
        Part::Image(_) => Some(note(part, "Ollama takes the bytes of an image, and no address")),
        other => Some(note(other, "Ollama takes only text and images")),
    }
}

/// Returns the bytes of an image in base64, also those of a `data:` URL.
fn image(part: &Part) -> Option<Cow<'_, str>> {
    let Part::Image(media) = part else { return None };
    inline(media).map(|(_, data)| data).filter(|data| !data.is_empty())
}
