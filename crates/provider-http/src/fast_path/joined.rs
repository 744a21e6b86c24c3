//! Data that rides on reasoning, piece by piece: the pieces that differ only in their text are joined to one.

use std::mem;

use advisor_core::{Delta, DeltaKind};
use serde_json::Value;

use super::fields::Field;

/// The data that came last, as long as more of it may come.
pub(super) struct JoinedData {
    /// Where the joined strings are in the data.
    holder: Option<&'static Field>,
    run: Option<Run>,
}

struct Run {
    delta: Delta,
    /// The JSON pointer to the joined string, if the data has exactly one. Of several strings it is not known in
    /// which order the server wrote them.
    pointer: Option<String>,
    /// The end of the joined string, not written into the data yet.
    more: String,
    /// How many bytes were appended to the data.
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
        if let Some(run) = &mut self.run
            && run.join(&mut delta)
        {
            run.template = template;
            return None;
        }
        let before = self.end();
        let pointer = value_of_mut(&mut delta).and_then(|value| self.pointer(value));
        self.run = Some(Run { delta, pointer, more: String::new(), bytes: 0, template });
        before
    }

    /// Appends a text to the data if events of this template continue it.
    #[inline]
    pub(super) fn append(&mut self, text: &str, template: u64) -> bool {
        let Some(run) = self.run.as_mut().filter(|run| run.template == Some(template)) else { return false };
        let fits = run.takes(text.len());
        if fits {
            run.more.push_str(text);
        }
        fits
    }

    /// Ends the data, and returns it.
    pub(super) fn end(&mut self) -> Option<Delta> {
        let mut run = self.run.take()?;
        run.write_more();
        Some(run.delta)
    }

    /// Whether `text` is the only joined string of this data.
    pub(super) fn joins_only(&self, value: &Value, text: &str) -> bool {
        let pointer = self.pointer(value);
        pointer.and_then(|pointer| value.pointer(&pointer)?.as_str()) == Some(text)
    }

    /// The data of a template with another text in place of its joined string.
    pub(super) fn with_text(&self, mut delta: Delta, text: &str) -> Delta {
        if let Some(value) = value_of_mut(&mut delta)
            && let Some(pointer) = self.pointer(value)
            && let Some(joined) = string_at(value, &pointer)
        {
            text.clone_into(joined);
        }
        delta
    }

    /// The JSON pointer to the joined string, if there is exactly one.
    fn pointer(&self, value: &Value) -> Option<String> {
        let mut pointers = Vec::new();
        find_joined(self.holder?, value, "", &mut pointers);
        pointers.pop().filter(|_| pointers.is_empty())
    }
}

impl Run {
    /// Counts more bytes. Returns false if they are too many.
    #[inline]
    fn takes(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes <= MOST
    }

    /// Appends the joined string of `delta` to that of the data. Returns false if the two differ in anything else,
    /// or the string is too long.
    fn join(&mut self, delta: &mut Delta) -> bool {
        self.write_more();
        if (self.delta.choice, self.delta.block) != (delta.choice, delta.block) {
            return false;
        }
        let Some(text) = string_in(delta, self.pointer.as_deref()).map(mem::take) else { return false };
        let fits = self.takes(text.len());
        let joined = string_in(&mut self.delta, self.pointer.as_deref()).map(mem::take).unwrap_or_default();
        let joins = fits && self.delta.kind == delta.kind;
        let (joined, text) = if joins { (joined + &text, String::new()) } else { (joined, text) };
        self.put(joined);
        if let Some(place) = string_in(delta, self.pointer.as_deref()) {
            *place = text;
        }
        joins
    }

    fn put(&mut self, text: String) {
        if let Some(joined) = string_in(&mut self.delta, self.pointer.as_deref()) {
            *joined = text;
        }
    }

    fn write_more(&mut self) {
        if let Some(joined) = string_in(&mut self.delta, self.pointer.as_deref()) {
            joined.push_str(&self.more);
        }
        self.more.clear();
    }
}

fn value_of_mut(delta: &mut Delta) -> Option<&mut Value> {
    match &mut delta.kind {
        DeltaKind::ReasoningData(data) => Some(&mut data.value),
        _ => None,
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

/// Appends the JSON pointers to the joined strings. `path` is the pointer to `value`.
fn find_joined(field: &'static Field, value: &Value, path: &str, pointers: &mut Vec<String>) {
    match (field, value) {
        (Field::Joined, Value::String(_)) => pointers.push(path.to_owned()),
        (Field::Object(fields) | Field::Whole(fields), Value::Object(values)) => {
            for (key, field) in *fields {
                let value = values.get(*key).into_iter();
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                value.for_each(|value| find_joined(field, value, &path, pointers));
            }
        }
        (Field::List(entry), Value::Array(values)) => {
            for (at, value) in values.iter().enumerate() {
                find_joined(entry, value, &format!("{path}/{at}"), pointers);
            }
        }
        _ => {}
    }
}

fn string_at<'a>(value: &'a mut Value, pointer: &str) -> Option<&'a mut String> {
    match value.pointer_mut(pointer) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn string_in<'a>(delta: &'a mut Delta, pointer: Option<&str>) -> Option<&'a mut String> {
    string_at(value_of_mut(delta)?, pointer?)
}
