//! Reasoning that is sent back to the server (Q63, Q64).

use advisor_core::{Block, BlockKind};
use serde::Serialize;
use serde_json::{Map, Value};

use super::ChatForm;
use crate::profile::ReasoningEcho;
use crate::wire::REASONING_DETAILS;
use provider_http::json::arguments::fields_that_go_back;

/// The fields of an assistant message that hold reasoning; usually none.
#[derive(Debug, Default, Serialize)]
pub(super) struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Value>,
}

impl Reasoning {
    pub(super) fn new(blocks: &[Block], form: &ChatForm) -> Self {
        let echo = form.profile.reasoning;
        let has_calls = blocks.iter().any(|block| block.as_tool_call().is_some());
        let text = Some(text(blocks)).filter(|text| !text.is_empty());
        match echo {
            ReasoningEcho::Details => match details(blocks, form) {
                details if details.is_empty() => Self { reasoning: text, ..Self::default() },
                reasoning_details => Self { reasoning_details, ..Self::default() },
            },
            ReasoningEcho::Reasoning if has_calls => Self { reasoning: text, ..Self::default() },
            ReasoningEcho::ReasoningContent if has_calls => {
                Self { reasoning_content: text, ..Self::default() }
            }
            ReasoningEcho::RequiredReasoningContent if has_calls => {
                Self { reasoning_content: Some(text.unwrap_or_default()), ..Self::default() }
            }
            _ => Self::default(),
        }
    }
}

fn text(blocks: &[Block]) -> String {
    blocks.iter().filter_map(|block| block.content().text_of(BlockKind::Reasoning)).collect()
}

/// The most reasoning details whose pieces may alternate.
const BESIDE_EACH_OTHER: usize = 64;

/// Joins the pieces of reasoning details into whole details. A piece belongs to the one before it if both have the same
/// type and index, and no different ids. With a number as its index, it may belong to an earlier one that has no signature
/// yet.
fn details(blocks: &[Block], form: &ChatForm) -> Vec<Value> {
    let data = blocks.iter().flat_map(|block| form.own_data(block));
    let pieces = data.filter_map(|data| data.value.get(REASONING_DETAILS)?.as_array()).flatten();
    let mut wholes: Vec<Map<String, Value>> = Vec::new();
    for piece in pieces.filter_map(Value::as_object) {
        let continues = |whole: &Map<String, Value>| {
            let is_other = id_of(whole).zip(id_of(piece)).is_some_and(|(whole, piece)| whole != piece);
            ["type", "index"].iter().all(|key| whole.get(*key) == piece.get(*key)) && !is_other
        };
        let is_numbered = piece.get("index").is_some_and(Value::is_number);
        let is_open = |whole: &Map<String, Value>| {
            ["signature", "data"]
                .iter()
                .all(|key| whole.get(*key).and_then(Value::as_str).is_none_or(str::is_empty))
        };
        let fits = |(behind, whole): &(usize, &mut Map<String, Value>)| {
            continues(whole) && (*behind == 0 || is_numbered && is_open(whole))
        };
        // Details that stream beside each other are few, and the pieces may be many.
        match wholes.iter_mut().rev().take(BESIDE_EACH_OTHER).enumerate().find(fits) {
            Some((_, whole)) => extend(whole, piece),
            None => wholes.push(piece.clone()),
        }
    }
    wholes.into_iter().map(|whole| Value::Object(fields_that_go_back(whole))).collect()
}

fn id_of(detail: &Map<String, Value>) -> Option<&str> {
    detail.get("id").and_then(Value::as_str)
}

/// Appends texts. Of any other field the last value that is not empty counts, such as a signature at the end.
fn extend(whole: &mut Map<String, Value>, piece: &Map<String, Value>) {
    for (key, value) in piece {
        match (whole.get_mut(key), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more))
                if matches!(key.as_str(), "text" | "summary") =>
            {
                text.push_str(more);
            }
            (Some(Value::String(_)), Value::String(more)) if more.is_empty() => {}
            _ => {
                whole.insert(key.clone(), value.clone());
            }
        }
    }
}
