//! Reasoning that is sent back to the server (Q63, Q64).

use advisor_core::{Block, BlockKind};
use serde::Serialize;
use serde_json::{Map, Value};

use super::form::ChatForm;
use crate::profile::{EchoScope, ReasoningField};
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
        let echo = form.rules.reasoning;
        let wanted = match echo.scope {
            EchoScope::Never => false,
            EchoScope::WithCalls | EchoScope::AlwaysWithCalls => {
                blocks.iter().any(|block| block.as_tool_call().is_some())
            }
            EchoScope::Always => true,
        };
        if !wanted {
            return Self::default();
        }
        let text =
            Some(text(blocks)).filter(|text| !text.is_empty() || echo.scope == EchoScope::AlwaysWithCalls);
        match echo.field {
            ReasoningField::ReasoningContent => Self { reasoning_content: text, ..Self::default() },
            ReasoningField::Reasoning => Self { reasoning: text, ..Self::default() },
            ReasoningField::Details => match details(blocks, form) {
                details if details.is_empty() => Self { reasoning: text, ..Self::default() },
                reasoning_details => Self { reasoning_details, ..Self::default() },
            },
        }
    }
}

fn text(blocks: &[Block]) -> String {
    blocks.iter().filter_map(|block| block.content().text_of(BlockKind::Reasoning)).collect()
}

/// Joins the pieces of reasoning details into whole details.
fn details(blocks: &[Block], form: &ChatForm) -> Vec<Value> {
    let data = blocks.iter().flat_map(Block::provider_data).filter(|data| data.format == form.format);
    let pieces = data.filter_map(|data| data.value.get(REASONING_DETAILS)?.as_array()).flatten();
    let mut wholes: Vec<Map<String, Value>> = Vec::new();
    for piece in pieces.filter_map(Value::as_object) {
        match wholes.iter_mut().find(|whole| belongs(whole, piece)) {
            Some(whole) => extend(whole, piece),
            None => wholes.push(piece.clone()),
        }
    }
    wholes.into_iter().map(|whole| Value::Object(fields_that_go_back(whole))).collect()
}

/// Checks whether a piece has the type and index of `whole`, and no other id. A missing id differs from none.
fn belongs(whole: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let same = |key: &str| whole.get(key).unwrap_or(&Value::Null) == piece.get(key).unwrap_or(&Value::Null);
    let ids = [whole, piece].map(|detail| detail.get("id").and_then(Value::as_str));
    let same_id = matches!(ids, [Some(one), Some(other)] if one == other) || ids.contains(&None);
    same("type") && same("index") && same_id
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
