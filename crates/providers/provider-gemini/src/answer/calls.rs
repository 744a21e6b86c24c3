//! Calls: whole ones, and those whose arguments arrive in pieces.

use std::collections::VecDeque;

use advisor_core::{Delta, DeltaKind, ProviderData, Text, ToolCallDelta};
use serde_json::{Map, Value};

use crate::wire::Call;

/// The deepest nesting of arguments that arrive in pieces.
const MOST_NESTED: usize = 64;
/// Arguments that are no JSON, so that their call never runs.
const INVALID: &str = "{";

/// The calls of an answer.
#[derive(Default)]
pub(super) struct Calls {
    /// The number of calls so far, which distinguishes them: the wire often has no ids, and no indexes.
    begun: i64,
    /// The call whose arguments continue.
    open: Option<OpenCall>,
}

/// A call whose arguments arrive in pieces (`partialArgs`). They are passed on whole, at its end.
struct OpenCall {
    index: i64,
    /// `None` after a piece that has no place in the arguments before it.
    arguments: Option<Value>,
    /// The path of the text that continues.
    text: Option<String>,
    /// The bytes of its events.
    kept: usize,
}

impl Calls {
    /// Emits a call, or takes a piece of one. `signature` is the data of its part.
    ///
    /// A piece says `willContinue`, except for the last one, which may be empty. A name begins another call.
    pub(super) fn read(
        &mut self,
        call: &Call<'_>,
        signature: Option<ProviderData>,
        deltas: &mut VecDeque<Delta>,
    ) {
        let begins = self.open.is_none() || !call.name.is_empty() || !call.args.is_empty();
        if begins {
            self.abandon(deltas);
            if call.is_empty {
                return;
            }
            self.open =
                Some(OpenCall { index: self.begun, arguments: Some(Value::Null), text: None, kept: 0 });
            self.begun = self.begun.saturating_add(1);
        }
        let Some(open) = &mut self.open else { return };
        for piece in call.pieces.as_array().into_iter().flatten() {
            if open.add(piece).is_none() {
                open.arguments = None;
            }
        }
        let index = open.index;
        let ends = !call.continues;
        let mut fragment = ToolCallDelta::default();
        fragment.index = Some(index);
        fragment.call_id = call.id.text().as_deref().map(Text::from);
        fragment.name = call.name.text().as_deref().map(Text::from);
        fragment.provider_data = signature;
        fragment.arguments_delta = match call.args.text() {
            Some(args) => Some(Text::from(args)),
            None => open.whole().filter(|_| ends).map(Text::from),
        };
        if begins || ends || fragment.provider_data.is_some() {
            deltas.push_back(Delta::tool_call(fragment));
        }
        if ends {
            self.open = None;
            deltas.push_back(Delta::from(DeltaKind::BlockEnd).with_block(index));
        }
    }

    /// Notes the bytes of an event.
    pub(super) fn note_kept(&mut self, bytes: usize) {
        if let Some(open) = &mut self.open {
            open.kept = open.kept.saturating_add(bytes);
        }
    }

    /// Returns the bytes of the events of an open call.
    pub(super) fn kept(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.kept)
    }

    /// Leaves a call whose end did not arrive. It never runs.
    pub(super) fn abandon(&mut self, deltas: &mut VecDeque<Delta>) {
        if let Some(open) = self.open.take() {
            deltas.push_back(Delta::tool_call(ToolCallDelta::arguments(open.index, INVALID)));
        }
    }
}

impl OpenCall {
    /// Adds a piece: the value at a path, or more of the text at the same path as before. `None` if it has no place.
    fn add(&mut self, piece: &Value) -> Option<()> {
        let path = piece.get("jsonPath")?.as_str()?;
        let place = place_at(self.arguments.as_mut()?, path)?;
        let continues = self.text.take().is_some_and(|before| before == path);
        match (piece.get("stringValue").and_then(Value::as_str), place) {
            (Some(more), Value::String(text)) if continues => text.push_str(more),
            (Some(text), place @ Value::Null) => *place = text.into(),
            (None, place @ Value::Null) => *place = other_value(piece)?,
            _ => return None,
        }
        self.text = (piece.get("willContinue") == Some(&Value::Bool(true))).then(|| path.to_owned());
        Some(())
    }

    /// Returns the arguments as text; `None` if there are none.
    fn whole(&self) -> Option<String> {
        match &self.arguments {
            None => Some(INVALID.to_owned()),
            Some(Value::Null) => None,
            Some(arguments) => Some(arguments.to_string()),
        }
    }
}

/// Returns the place of a path such as `$.list[0].name` or `$['odd name']`, which is made if nothing is there; `None` if
/// something else is.
fn place_at<'v>(arguments: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    let (mut place, mut rest, mut depth) = (arguments, path.strip_prefix('$')?, 0);
    while !rest.is_empty() && depth < MOST_NESTED {
        let (step, behind) = match rest.strip_prefix('[') {
            Some(bracketed) => bracketed.split_once(']')?,
            None => {
                let name = rest.strip_prefix('.')?;
                name.split_at_checked(name.find(['.', '[']).unwrap_or(name.len()))?
            }
        };
        let index = step.parse().ok().filter(|_: &usize| rest.starts_with('['));
        if place.is_null() {
            *place = if index.is_some() { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
        }
        place = match (place, index) {
            (Value::Array(items), Some(index)) => {
                if index == items.len() {
                    items.push(Value::Null);
                }
                items.get_mut(index)?
            }
            (Value::Object(fields), None) => {
                fields.entry(step.trim_matches(['\'', '"'])).or_insert(Value::Null)
            }
            _ => return None,
        };
        (rest, depth) = (behind, depth + 1);
    }
    rest.is_empty().then_some(place)
}

/// Returns the value of a piece that is no text.
fn other_value(piece: &Value) -> Option<Value> {
    let number = piece.get("numberValue").filter(|value| value.is_number());
    let boolean = piece.get("boolValue").filter(|value| value.is_boolean());
    number.or(boolean).cloned().or_else(|| piece.get("nullValue").map(|_| Value::Null))
}
