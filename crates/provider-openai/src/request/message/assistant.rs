//! An assistant's message on the wire: one message, however many calls it makes.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use advisor_core::{Block, BlockContent, ToolCall};
use provider_http::joined_text;
use provider_http::json::arguments::{self, fields_that_go_back};
use provider_http::media::stand_in;
use provider_http::names::WireNames;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::profile::NoText;
use crate::request::ChatForm;
use crate::request::reasoning::Reasoning;
use crate::wire::AUDIO;

#[derive(Serialize)]
pub(super) struct Assistant<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Content::is_absent")]
    content: Content,
    #[serde(flatten)]
    reasoning: Reasoning,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    /// The id of the audio in an earlier answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Null,
    Absent,
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: Function<'a>,
    #[serde(flatten)]
    extras: Map<String, Value>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
    #[serde(flatten)]
    extras: Map<String, Value>,
}

impl<'a> Assistant<'a> {
    pub(super) fn new(blocks: &'a [Block], form: &ChatForm, wire: &'a WireNames) -> Self {
        let calls = blocks.iter().filter_map(|block| Some((block, block.as_tool_call()?)));
        let tool_calls: Vec<_> = calls.map(|(block, call)| Call::new(block, call, form, wire)).collect();
        Self {
            role: "assistant",
            content: content(blocks, &tool_calls, form),
            reasoning: Reasoning::new(blocks, form),
            tool_calls,
            audio: audio(blocks, form),
        }
    }
}

/// Returns the text, or the value that `no_text` demands for none. A refusal is sent as text, as the user saw
/// it.
fn content(blocks: &[Block], calls: &[Call<'_>], form: &ChatForm) -> Content {
    let text = text(blocks, form);
    match form.rules.no_text {
        _ if calls.is_empty() && text.trim().is_empty() => Content::Text(note(blocks, form).unwrap_or(text)),
        _ if !text.is_empty() || calls.is_empty() => Content::Text(text),
        NoText::Null => Content::Null,
        NoText::Absent => Content::Absent,
        NoText::Empty => Content::Text(text),
    }
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

/// Checks whether an answer is written the same way at any later time. Its audio goes back until the server forgets it.
pub(super) fn is_lasting(blocks: &[Block], form: &ChatForm) -> bool {
    audios(blocks, form).all(|audio| expiry(audio).is_none_or(is_past))
}

/// Returns the id of the audio in the answer, unless the server has forgotten it. The transcript is text, and is sent
/// in any case.
fn audio(blocks: &[Block], form: &ChatForm) -> Option<Value> {
    let mut known = audios(blocks, form).filter(|audio| !expiry(audio).is_some_and(is_past));
    known.find_map(|audio| Some(json!({ "id": audio.get("id")?.as_str()? })))
}

/// Returns the server's data of each audio in an answer.
fn audios<'a>(blocks: &'a [Block], form: &ChatForm) -> impl Iterator<Item = &'a Value> {
    blocks.iter().flat_map(|block| match block.content() {
        BlockContent::Media(_) => {
            let own = block.provider_data().iter().filter(|data| data.format == form.format);
            own.filter_map(|data| data.value.get(AUDIO)).collect()
        }
        BlockContent::Opaque(opaque) if opaque.format == form.format && opaque.name == *AUDIO => {
            vec![&opaque.value]
        }
        _ => Vec::new(),
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

impl Content {
    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<'a> Call<'a> {
    fn new(block: &Block, call: &'a ToolCall, form: &ChatForm, wire: &'a WireNames) -> Self {
        let mut extras = if form.rules.echoes_call_data { extras(block, form) } else { Map::new() };
        let function_extras = match extras.remove("function") {
            Some(Value::Object(extras)) => fields_that_go_back(extras),
            _ => Map::new(),
        };
        Self {
            id: wire.call_id(&call.id),
            r#type: "function",
            function: Function {
                name: wire.tool(&call.name),
                arguments: arguments::as_text(&call.arguments),
                extras: function_extras,
            },
            extras: fields_that_go_back(extras),
        }
    }
}

/// Returns the data that the server attached to a call, beyond the fields this crate knows. Of a repeated field
/// the last value counts.
fn extras(block: &Block, form: &ChatForm) -> Map<String, Value> {
    let data = block.provider_data().iter().filter(|data| data.format == form.format);
    data.filter_map(|data| data.value.as_object().cloned()).flatten().collect()
}
