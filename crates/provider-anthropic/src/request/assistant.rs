//! The content blocks of an answer that goes back to the server.
//!
//! Thinking goes back with its signature, unchanged and in its place; without one the API refuses it, so that of
//! other providers is left out. Opaque blocks go back to the format that they came from.
//!
//! Calls go back behind the other content of an answer. The API refuses text behind a call, such as the denial of the
//! next one, and a tool of the server behind it. It also refuses thinking that changed its place among calls, so no block
//! passes signed thinking.
//!
//! The API also refuses an answer that is thinking alone, signed or not. Such an answer is left out, and a paused one is
//! asked for again.

use std::borrow::Cow;

use advisor_core::{Block, BlockContent, Media, Text, ToolCall};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::blocks::Blocks;
use super::message_form::MessageForm;
use super::parts::{object, text_block};
use super::server_tools::{SentAs, own_data};
use crate::wire::{CALLER, CITATION, REPORTS, SIGNATURE};
use provider_http::json::arguments;

/// A note in place of an answer of which nothing can be sent. The model must see that it answered.
const UNSENDABLE: &str = "[content that cannot be shown here]";

/// Appends the blocks of an answer, each in the form that `sent_as` returns.
pub(super) fn push(
    blocks: &mut Blocks,
    answer: &[Block],
    form: MessageForm<'_>,
    sent_as: impl Fn(&Block) -> SentAs,
) -> serde_json::Result<()> {
    let mut is_thinking_alone = true;
    for block in calls_last(answer, &form.format.0).filter(|block| sent_as(block) != SentAs::Nothing) {
        let before = blocks.len();
        match block.content() {
            BlockContent::Text(text) | BlockContent::Refusal(text) => {
                push_some(blocks, with_citations(block, &form.format.0, text))?
            }
            BlockContent::Reasoning(text) => push_some(blocks, thinking(block, &form.format.0, text))?,
            BlockContent::ToolCall(call) => {
                let mut tool_use = ToolUse::new(block, call, form)?;
                if sent_as(block) == SentAs::DirectCall {
                    tool_use.others.remove(CALLER);
                }
                blocks.push(&tool_use)?;
            }
            BlockContent::Opaque(opaque) if opaque.format == form.format.0 => blocks.push(&opaque.value)?,
            BlockContent::Media(media) => push_some(blocks, text_block(note(media)))?,
            _ => {}
        }
        is_thinking_alone &= blocks.len() == before || is_thinking(block);
    }
    if is_thinking_alone {
        *blocks = Blocks::default();
    }
    if blocks.is_empty() && answer.iter().any(|block| matches!(block.content(), BlockContent::Opaque(_))) {
        push_some(blocks, text_block(UNSENDABLE))?;
    }
    Ok(())
}

/// Iterates over the blocks, with the calls behind the other content. Signed thinking stays in its place among calls.
fn calls_last<'a>(answer: &'a [Block], format: &Text) -> impl Iterator<Item = &'a Block> {
    let place = |block: &&Block| match block.as_tool_call() {
        _ if is_signed(block, format) => Place::Thinking,
        Some(_) => Place::Call,
        None => Place::Content,
    };
    // Each stretch ends with signed thinking, or with the answer.
    answer.split_inclusive(|block| is_signed(block, format)).flat_map(move |stretch| {
        let mut blocks: Vec<_> = stretch.iter().collect();
        blocks.sort_by_key(place);
        blocks
    })
}

/// The places of blocks before the next signed thinking, in their order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Content,
    Call,
    Thinking,
}

/// Checks whether a block is thinking that goes back.
fn is_signed(block: &Block, format: &Text) -> bool {
    match block.content() {
        BlockContent::Reasoning(_) => own_data(block, format).any(|data| data.get(SIGNATURE).is_some()),
        BlockContent::Opaque(opaque) => opaque.format == *format && is_thinking(block),
        _ => false,
    }
}

fn is_thinking(block: &Block) -> bool {
    match block.content() {
        BlockContent::Reasoning(_) => true,
        BlockContent::Opaque(opaque) => opaque.name == *"redacted_thinking",
        _ => false,
    }
}

fn push_some(blocks: &mut Blocks, block: Option<Value>) -> serde_json::Result<()> {
    block.map_or(Ok(()), |block| blocks.push(&block))
}

fn with_citations(block: &Block, format: &Text, text: &str) -> Option<Value> {
    let mut written = text_block(text)?;
    let citations: Vec<Value> =
        own_data(block, format).filter_map(|data| data.get(CITATION)).cloned().collect();
    if let Some(fields) = written.as_object_mut().filter(|_| !citations.is_empty()) {
        fields.insert("citations".to_owned(), Value::Array(citations));
    }
    Some(written)
}

fn thinking(block: &Block, format: &Text, text: &str) -> Option<Value> {
    let signature = own_data(block, format).filter_map(|data| data.get(SIGNATURE)).last()?;
    Some(object([("type", "thinking".into()), ("thinking", text.into()), (SIGNATURE, signature.clone())]))
}

fn note(media: &Media) -> &'static str {
    match media.mime.split('/').next() {
        Some("image") => "[image]",
        Some("audio") => "[audio]",
        Some("video") => "[video]",
        _ => "[file]",
    }
}

/// A call of a tool.
#[derive(Serialize)]
struct ToolUse<'a> {
    r#type: &'static str,
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    input: Box<RawValue>,
    /// Fields that this crate does not know, such as `caller`.
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl<'a> ToolUse<'a> {
    fn new(block: &Block, call: &'a ToolCall, form: MessageForm<'a>) -> serde_json::Result<Self> {
        let fields = own_data(block, &form.format.0).filter_map(Value::as_object).flatten();
        let others = fields.filter(|(key, _)| !REPORTS.contains(&key.as_str()));
        Ok(Self {
            r#type: "tool_use",
            id: form.names.ids.on_the_wire(&call.id),
            name: form.names.tools.on_the_wire(&call.name),
            input: RawValue::from_string(arguments::as_text(&call.arguments).into_owned())?,
            others: others.map(|(key, value)| (key.clone(), value.clone())).collect(),
        })
    }
}
