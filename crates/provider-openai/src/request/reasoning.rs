//! Reasoning that is sent back to the server (Q63, Q64).

use std::collections::HashMap;

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

/// Joins the pieces of reasoning details into whole details.
fn details(blocks: &[Block], form: &ChatForm) -> Vec<Value> {
    let data = blocks.iter().flat_map(|block| form.own_data(block));
    let pieces = data.filter_map(|data| data.value.get(REASONING_DETAILS)?.as_array()).flatten();
    let mut details = Details::default();
    pieces.filter_map(Value::as_object).for_each(|piece| details.add(piece));
    details.wholes.into_iter().map(|whole| Value::Object(fields_that_go_back(whole))).collect()
}

/// Whole details, in the order of their first pieces.
#[derive(Default)]
struct Details<'a> {
    wholes: Vec<Map<String, Value>>,
    /// The place of each whole by its type, index and id. The first one of a type and index has no id here.
    places: HashMap<(&'a Value, &'a Value, Option<&'a str>), usize>,
}

impl<'a> Details<'a> {
    fn add(&mut self, piece: &'a Map<String, Value>) {
        let place = self.place_of(piece);
        match self.wholes.get_mut(place) {
            Some(whole) => extend(whole, piece),
            None => self.wholes.push(piece.clone()),
        }
    }

    /// Returns the place of the first whole with the piece's type and index, and no other id. A missing id differs
    /// from none.
    // A server may send a piece for each of many wholes, so they are not searched.
    fn place_of(&mut self, piece: &'a Map<String, Value>) -> usize {
        let [kind, index] = ["type", "index"].map(|name| piece.get(name).unwrap_or(&Value::Null));
        let (id, new) = (id_of(piece), self.wholes.len());
        let first = *self.places.entry((kind, index, None)).or_insert(new);
        let first_id = self.wholes.get(first).and_then(id_of);
        if id.is_none() || first_id.is_none() || id == first_id {
            return first;
        }
        *self.places.entry((kind, index, id)).or_insert(new)
    }
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
