//! Messages in the form of Chat Completions: one on the wire for each, however many calls it makes.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use advisor_core::{Block, BlockContent, Message, MessageContent, Result, ToolCall};
use bytes::Bytes;
use provider_http::json::arguments::{self, fields_that_go_back};
use provider_http::media::stand_in;
use provider_http::names::{IdRule, WireNames};
use provider_http::written::entries;
use provider_http::{joined_text, parts_of_result};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::ChatForm;
use super::parts::{Content, tool_content, user_content};
use super::reasoning::Reasoning;
use crate::wire::AUDIO;
use crate::written::MessageForm;

/// A message on the wire.
#[derive(Default, Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    /// `None`: null.
    content: Option<Content<'a>>,
    #[serde(flatten)]
    reasoning: Reasoning,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
    /// The id of the audio in an earlier answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    /// The tool of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
}

impl MessageForm for ChatForm {
    const LIST: &'static str = "messages";

    fn name_of(tool: &Value) -> Option<&str> {
        tool.get("function")?.get("name")?.as_str()
    }

    fn call_ids(&self) -> IdRule {
        self.profile.call_ids
    }

    /// Checks whether an answer is written the same way at any later time. Its audio goes back until the server forgets
    /// it.
    fn is_lasting(&self, message: &Message) -> bool {
        audios(message.blocks(), self).all(|audio| expiry(audio).is_none_or(is_past))
    }

    fn write(&self, message: &Message, wire: &WireNames) -> Result<Bytes> {
        let said = |role, content| WireMessage { role, content: Some(content), ..WireMessage::default() };
        let parts = message.tool_result().map(parts_of_result).unwrap_or_default();
        entries([match message.content() {
            MessageContent::System(text) => said("system", Content::Text(text.as_str().into())),
            MessageContent::User(parts) => said("user", user_content(parts)),
            MessageContent::Assistant(blocks) => answer(blocks, self, wire),
            MessageContent::Tool(result) => WireMessage {
                tool_call_id: Some(wire.call_id(&result.call_id)),
                name: self.profile.sends_tool_name.then(|| wire.tool(&result.name)),
                ..said("tool", tool_content(&parts, self.profile.sends_tool_media))
            },
            // A kind of message newer than this crate is sent as its text.
            _ => said("user", Content::Text(message.text().into())),
        }])
    }
}

fn answer(blocks: &[Block], form: &ChatForm, wire: &WireNames) -> WireMessage<'static> {
    let calls = blocks.iter().filter_map(|block| Some((block, block.as_tool_call()?)));
    let tool_calls: Vec<_> = calls.map(|(block, call)| written_call(block, call, form, wire)).collect();
    WireMessage {
        role: "assistant",
        content: content(blocks, !tool_calls.is_empty(), form),
        reasoning: Reasoning::new(blocks, form),
        tool_calls,
        audio: audio(blocks, form),
        ..WireMessage::default()
    }
}

/// Returns the text, or what the server demands beside calls for none. A refusal is sent as text, as the user saw it.
fn content(blocks: &[Block], has_calls: bool, form: &ChatForm) -> Option<Content<'static>> {
    let mut text = text(blocks, form);
    if has_calls && text.is_empty() && form.profile.null_without_text {
        return None;
    }
    if !has_calls && text.trim().is_empty() {
        text = note(blocks, form).unwrap_or(text);
    }
    Some(Content::Text(text.into()))
}

/// Returns the text, with a note in place of media. Audio needs none that is sent back by its id, or whose transcript is
/// the text.
fn text(blocks: &[Block], form: &ChatForm) -> String {
    let is_said = audio(blocks, form).is_some() || !joined_text(blocks).trim().is_empty();
    let noted = |block: &Block| match block.content() {
        BlockContent::Media(media) if !(is_said && media.mime.starts_with("audio/")) => {
            Some(Block::text(stand_in(media)))
        }
        _ => None,
    };
    if !blocks.iter().any(|block| noted(block).is_some()) {
        return joined_text(blocks);
    }
    joined_text(&Vec::from_iter(blocks.iter().map(|block| noted(block).unwrap_or_else(|| block.clone()))))
}

/// Returns a note for an answer without text. Servers refuse empty content, and the model must see that it
/// answered. Neither audio that is sent back nor an empty answer needs one.
fn note(blocks: &[Block], form: &ChatForm) -> Option<String> {
    let is_other = |block: &Block| {
        !matches!(
            block.content(),
            BlockContent::Text(_)
                | BlockContent::Refusal(_)
                | BlockContent::Reasoning(_)
                | BlockContent::Citation(_)
                | BlockContent::Media(_)
                | BlockContent::ToolCall(_)
        )
    };
    let is_needed = audio(blocks, form).is_none() && blocks.iter().any(is_other);
    is_needed.then(|| "[content that cannot be shown here]".to_owned())
}

/// Returns the id of the audio in the answer, unless the server has forgotten it. The transcript is text, and is sent
/// in any case.
fn audio(blocks: &[Block], form: &ChatForm) -> Option<Value> {
    let mut known = audios(blocks, form).filter(|audio| !expiry(audio).is_some_and(is_past));
    known.find_map(|audio| Some(json!({ "id": audio.get("id")?.as_str()? })))
}

/// Returns the server's data of each audio in an answer.
fn audios<'a>(blocks: &'a [Block], form: &ChatForm) -> impl Iterator<Item = &'a Value> {
    blocks.iter().filter_map(|block| match block.content() {
        BlockContent::Media(_) => form.own_data(block).find_map(|data| data.value.get(AUDIO)),
        BlockContent::Opaque(opaque) if opaque.format == form.format && opaque.name == *AUDIO => {
            Some(&opaque.value)
        }
        _ => None,
    })
}

/// Returns the time at which the server forgets audio, in seconds since 1970.
fn expiry(audio: &Value) -> Option<u64> {
    audio.get("expires_at").and_then(Value::as_u64)
}

/// Checks whether this time, in seconds since 1970, is over.
fn is_past(seconds: u64) -> bool {
    SystemTime::now().duration_since(UNIX_EPOCH).is_ok_and(|now| now.as_secs() >= seconds)
}

/// Writes a call, with the data that the server attached to it beyond the fields this crate knows.
fn written_call(block: &Block, call: &ToolCall, form: &ChatForm, wire: &WireNames) -> Value {
    let mut extras = Map::new();
    if form.profile.echoes_call_data {
        // Of a repeated field the last value counts.
        extras.extend(form.own_data(block).filter_map(|data| data.value.as_object().cloned()).flatten());
    }
    let mut function = match extras.remove("function") {
        Some(Value::Object(extras)) => fields_that_go_back(extras),
        _ => Map::new(),
    };
    function.insert("name".to_owned(), wire.tool(&call.name).into());
    function.insert("arguments".to_owned(), arguments::as_text(&call.arguments).into());
    let mut fields = fields_that_go_back(extras);
    fields.insert("id".to_owned(), wire.call_id(&call.id).into());
    fields.insert("type".to_owned(), "function".into());
    fields.insert("function".to_owned(), Value::Object(function));
    Value::Object(fields)
}
