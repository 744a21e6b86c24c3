//! Data attached to reasoning, in pieces. Pieces that differ only in their text are joined to one.

use std::collections::VecDeque;
use std::mem;

use advisor_core::{Delta, DeltaKind};
use serde_json::Value;

use super::FastPath;
use super::fields::Field;

/// The data that came last, as long as more of it may come.
pub(super) struct JoinedData {
    /// The position of the joined strings in the data.
    holder: Option<&'static Field>,
    run: Option<Run>,
}

struct Run {
    /// The data, without its joined string.
    delta: Delta,
    /// The joined string, if the data has exactly one. Of several strings it is not known in which order the
    /// server wrote them.
    text: Option<String>,
    /// The number of bytes that were appended to the data.
    bytes: usize,
    /// The template whose events continue the data.
    template: Option<u64>,
}

/// The most bytes that are appended to data. Longer data is passed on in pieces, so that the limits of an answer
/// count it.
const MOST: usize = 64 << 10;

impl JoinedData {
    pub(super) fn new(fields: &'static Field) -> Self {
        Self { holder: holder(fields), run: None }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.run.is_none()
    }

    /// Takes the next data. Returns the data before it if this does not continue it.
    pub(super) fn add(&mut self, mut delta: Delta, template: Option<u64>) -> Option<Delta> {
        let text = self.string_in(&mut delta).map(mem::take);
        if let (Some(run), Some(text)) = (&mut self.run, &text)
            && run.delta == delta
            && run.push(text)
        {
            run.template = template;
            return None;
        }
        let before = self.end();
        self.run = Some(Run { delta, text, bytes: 0, template });
        before
    }

    /// Appends a text to the data if events of this template continue it.
    #[inline]
    pub(super) fn append(&mut self, text: &str, template: u64) -> bool {
        self.run.as_mut().filter(|run| run.template == Some(template)).is_some_and(|run| run.push(text))
    }

    /// Ends the data, and returns it.
    pub(super) fn end(&mut self) -> Option<Delta> {
        let Run { mut delta, text, .. } = self.run.take()?;
        if let (Some(place), Some(text)) = (self.string_in(&mut delta), text) {
            *place = text;
        }
        Some(delta)
    }

    /// Checks whether `text` is the only joined string of this data.
    pub(super) fn joins_only(&self, value: &Value, text: &str) -> bool {
        self.only_string(&mut value.clone()).is_some_and(|joined| joined == text)
    }

    /// Returns the data of a template with another text in place of its joined string.
    pub(super) fn with_text(&self, mut delta: Delta, text: &str) -> Delta {
        if let Some(joined) = self.string_in(&mut delta) {
            text.clone_into(joined);
        }
        delta
    }

    fn string_in<'a>(&self, delta: &'a mut Delta) -> Option<&'a mut String> {
        match &mut delta.kind {
            DeltaKind::ReasoningData(data) => self.only_string(&mut data.value),
            _ => None,
        }
    }

    /// Returns the joined string, if there is exactly one.
    fn only_string<'a>(&self, value: &'a mut Value) -> Option<&'a mut String> {
        let mut strings = Vec::new();
        push_joined(self.holder?, value, &mut strings);
        strings.pop().filter(|_| strings.is_empty())
    }
}

impl Run {
    /// Appends to the joined string. Returns false if there is none, or if the data becomes too long.
    #[inline]
    fn push(&mut self, more: &str) -> bool {
        self.bytes = self.bytes.saturating_add(more.len());
        match &mut self.text {
            Some(text) if self.bytes <= MOST => text.push_str(more),
            _ => return false,
        }
        true
    }
}

/// Returns the object around the values that have joined strings, or around lists of them.
fn holder(field: &'static Field) -> Option<&'static Field> {
    match field {
        Field::Object(fields) | Field::Whole(fields) => {
            let is_holder = fields.iter().any(|(_, field)| match field {
                Field::List(entry) => has_joined(entry),
                field => has_joined(field),
            });
            if is_holder { Some(field) } else { fields.iter().find_map(|(_, field)| holder(field)) }
        }
        Field::List(inner) | Field::TextOr(inner) => holder(inner),
        _ => None,
    }
}

fn has_joined(field: &Field) -> bool {
    match field {
        Field::Object(fields) | Field::Whole(fields) => {
            fields.iter().any(|(_, field)| matches!(field, Field::Joined))
        }
        _ => false,
    }
}

/// Appends the joined strings.
fn push_joined<'a>(field: &Field, value: &'a mut Value, strings: &mut Vec<&'a mut String>) {
    match (field, value) {
        (Field::Joined, Value::String(text)) => strings.push(text),
        (Field::Object(fields) | Field::Whole(fields), Value::Object(values)) => {
            for (key, value) in values.iter_mut() {
                if let Some((_, field)) = fields.iter().find(|(name, _)| name == key) {
                    push_joined(field, value, strings);
                }
            }
        }
        (Field::List(entry), Value::Array(values)) => {
            for value in values {
                push_joined(entry, value, strings);
            }
        }
        _ => {}
    }
}

impl FastPath {
    /// Does the same as [`parsed`](Self::parsed) without learning, for an event whose JSON was rewritten.
    pub fn join_parsed(&mut self, deltas: &mut VecDeque<Delta>, new: usize) {
        let is_data = |delta: &Delta| matches!(delta.kind, DeltaKind::ReasoningData(_));
        if self.joined.is_empty() && !deltas.range(new..).any(is_data) {
            return;
        }
        let mut added = deltas.split_off(new).into_iter().peekable();
        while let Some(delta) = added.next() {
            match &delta.kind {
                DeltaKind::ReasoningData(_) => deltas.extend(self.joined.add(delta, None)),
                DeltaKind::Usage(_) => deltas.push_back(delta),
                DeltaKind::Reasoning(_) => {
                    let data = added.next_if(|next| is_data(next) && is_beside(next, &delta));
                    deltas.extend(match data {
                        Some(data) => self.joined.add(data, None),
                        None => self.joined.end(),
                    });
                    deltas.push_back(delta);
                }
                _ => {
                    deltas.extend(self.joined.end());
                    deltas.push_back(delta);
                }
            }
        }
    }

    /// Appends the data attached to reasoning that is held back. Call it before the answer ends or fails.
    pub fn end_data(&mut self, deltas: &mut VecDeque<Delta>) {
        deltas.extend(self.joined.end());
    }
}

/// Checks whether two deltas belong to the same block.
fn is_beside(one: &Delta, other: &Delta) -> bool {
    one.block == other.block
}
