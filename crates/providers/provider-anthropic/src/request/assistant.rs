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

use advisor_core::{Block, BlockContent, Text, ToolCall};
use provider_http::json::arguments;
use provider_http::media::stand_in;
use provider_http::names::WireNames;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::server_tools::{Pairs, SentAs, own_data};
use super::{Blocks, parts};
use crate::wire::{CALLER, CITATION, CONTAINER, SIGNATURE, STOP_DETAILS};

/// A note in place of an answer of which nothing can be sent. The model must see that it answered.
const UNSENDABLE: &str = "[content that cannot be shown here]";

/// Appends the blocks of an answer, as far as they go back.
pub(super) fn push(
    blocks: &mut Blocks,
    answer: &[Block],
    format: &Text,
    names: &WireNames,
    pairs: &Pairs<'_>,
) -> serde_json::Result<()> {
    let mut is_thinking_alone = true;
    for block in calls_last(answer, format) {
        let sent_as = pairs.sent_as(block);
        let written = match block.content() {
            _ if sent_as == SentAs::Nothing => None,
            BlockContent::ToolCall(call) => {
                let is_direct = sent_as == SentAs::DirectCall;
                blocks.push(&ToolUse::new(block, call, format, names, is_direct)?)?;
                is_thinking_alone = false;
                None
            }
            BlockContent::Text(text) | BlockContent::Refusal(text) => with_citations(block, format, text),
            BlockContent::Reasoning(text) => thinking(block, format, text),
            BlockContent::Opaque(opaque) if opaque.format == *format => Some(opaque.value.clone()),
            BlockContent::Media(media) => parts::text(stand_in(media)),
            _ => None,
        };
        if let Some(written) = written {
            blocks.push(&written)?;
            is_thinking_alone &= is_thinking(block);
        }
    }
    if is_thinking_alone {
        blocks.0.clear();
        if answer.iter().any(|block| matches!(block.content(), BlockContent::Opaque(_))) {
            parts::text(UNSENDABLE).iter().try_for_each(|note| blocks.push(note))?;
        }
    }
    Ok(())
}

/// Iterates over the blocks, with the calls behind the other content. Signed thinking stays in its place among calls.
fn calls_last<'a>(answer: &'a [Block], format: &Text) -> impl Iterator<Item = &'a Block> {
    // Each stretch ends with signed thinking, or with the answer.
    answer.split_inclusive(|block| is_signed(block, format)).flat_map(move |stretch| {
        let mut blocks: Vec<_> = stretch.iter().collect();
        // Other content, then calls, then thinking.
        blocks.sort_by_key(|block| (is_signed(block, format), block.as_tool_call().is_some()));
        blocks
    })
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

fn with_citations(block: &Block, format: &Text, text: &str) -> Option<Value> {
    let mut written = parts::text(text);
    let citations: Vec<Value> =
        own_data(block, format).filter_map(|data| data.get(CITATION)).cloned().collect();
    if let Some(fields) = written.as_mut().and_then(Value::as_object_mut).filter(|_| !citations.is_empty()) {
        fields.insert("citations".to_owned(), citations.into());
    }
    written
}

fn thinking(block: &Block, format: &Text, text: &str) -> Option<Value> {
    let signature = own_data(block, format).filter_map(|data| data.get(SIGNATURE)).last()?;
    let fields = [("type", "thinking".into()), ("thinking", text.into()), (SIGNATURE, signature.clone())];
    Some(Value::from_iter(fields))
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
    /// Creates a call. A direct one has no caller other than the model.
    fn new(
        block: &Block,
        call: &'a ToolCall,
        format: &Text,
        names: &'a WireNames,
        is_direct: bool,
    ) -> serde_json::Result<Self> {
        let fields = own_data(block, format).filter_map(Value::as_object).flatten();
        let others = fields.filter(|(key, _)| match key.as_str() {
            CONTAINER | STOP_DETAILS => false,
            CALLER => !is_direct,
            _ => true,
        });
        Ok(Self {
            r#type: "tool_use",
            id: names.call_id(&call.id),
            name: names.tool(&call.name),
            input: RawValue::from_string(arguments::as_text(&call.arguments).into_owned())?,
            others: others.map(|(key, value)| (key.clone(), value.clone())).collect(),
        })
    }
}
