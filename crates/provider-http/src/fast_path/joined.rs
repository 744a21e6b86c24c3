//! Data that rides on reasoning, piece by piece: the pieces that differ only in their text are joined to one.

use advisor_core::{Delta, DeltaKind};
use serde_json::Value;

use super::fields::Field;

/// The data that came last, as long as more of it may come.
pub(super) struct JoinedData {
    /// The keys of the joined strings.
    keys: Vec<&'static str>,
    run: Option<Run>,
}

struct Run {
    delta: Delta,
    /// JSON pointers to the joined strings of the data.
    pointers: Vec<String>,
    /// The end of the one joined string, not written into the data yet.
    more: String,
    /// The template whose events continue the data.
    template: Option<u64>,
}

impl JoinedData {
    pub(super) fn new(fields: &'static Field) -> Self {
        let mut keys = Vec::new();
        collect_keys(fields, &mut keys);
        Self { keys, run: None }
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
        let pointers = value_of(&delta).map(|value| self.pointers(value)).unwrap_or_default();
        self.run = Some(Run { delta, pointers, more: String::new(), template });
        before
    }

    /// Appends a text to the data if events of this template continue it.
    #[inline]
    pub(super) fn append(&mut self, text: &str, template: u64) -> bool {
        match &mut self.run {
            Some(run) if run.template == Some(template) => {
                run.more.push_str(text);
                true
            }
            _ => false,
        }
    }

    /// Ends the data, and returns it.
    pub(super) fn end(&mut self) -> Option<Delta> {
        let mut run = self.run.take()?;
        run.write_more();
        Some(run.delta)
    }

    /// Whether `text` is the only joined string of this data.
    pub(super) fn joins_only(&self, value: &Value, text: &str) -> bool {
        match self.pointers(value).as_slice() {
            [pointer] => value.pointer(pointer).and_then(Value::as_str) == Some(text),
            _ => false,
        }
    }

    /// The data of a template with another text in place of its joined string.
    pub(super) fn with_text(&self, mut delta: Delta, text: &str) -> Delta {
        if let Some(value) = value_of_mut(&mut delta) {
            for pointer in self.pointers(value) {
                string_at(value, &pointer).into_iter().for_each(|joined| text.clone_into(joined));
            }
        }
        delta
    }

    fn pointers(&self, value: &Value) -> Vec<String> {
        let mut pointers = Vec::new();
        find_joined(value, &self.keys, &mut String::new(), &mut pointers);
        pointers
    }
}

impl Run {
    /// Appends the joined strings of `delta` to those of the data. Returns false if the two differ in anything else.
    fn join(&mut self, delta: &mut Delta) -> bool {
        self.write_more();
        if self.pointers.is_empty() || (self.delta.choice, self.delta.block) != (delta.choice, delta.block) {
            return false;
        }
        let (Some(value), Some(more)) = (value_of_mut(&mut self.delta), value_of_mut(delta)) else {
            return false;
        };
        let texts = take_strings(value, &self.pointers);
        let others = take_strings(more, &self.pointers);
        let is_same = texts.len() == others.len() && value == more;
        push_strings(value, &self.pointers, &texts);
        push_strings(if is_same { value } else { more }, &self.pointers, &others);
        is_same
    }

    fn write_more(&mut self) {
        let more = std::mem::take(&mut self.more);
        if let (Some(value), [pointer, ..]) = (value_of_mut(&mut self.delta), self.pointers.as_slice()) {
            string_at(value, pointer).into_iter().for_each(|joined| joined.push_str(&more));
        }
    }
}

fn value_of(delta: &Delta) -> Option<&Value> {
    match &delta.kind {
        DeltaKind::ReasoningData(data) => Some(&data.value),
        _ => None,
    }
}

fn value_of_mut(delta: &mut Delta) -> Option<&mut Value> {
    match &mut delta.kind {
        DeltaKind::ReasoningData(data) => Some(&mut data.value),
        _ => None,
    }
}

fn collect_keys(field: &'static Field, keys: &mut Vec<&'static str>) {
    match field {
        Field::Object(fields) | Field::Whole(fields) => {
            for (key, field) in *fields {
                match field {
                    Field::Joined => keys.push(key),
                    field => collect_keys(field, keys),
                }
            }
        }
        Field::List(entry) | Field::TextOr(entry) => collect_keys(entry, keys),
        _ => {}
    }
}

/// Appends the JSON pointers to all strings of these keys. `path` is the pointer to `value`.
fn find_joined(value: &Value, keys: &[&str], path: &mut String, pointers: &mut Vec<String>) {
    let length = path.len();
    let mut descend = |path: &mut String, token: &str, value: &Value| {
        path.push('/');
        path.push_str(token);
        match value {
            Value::String(_) if keys.contains(&token) => pointers.push(path.clone()),
            value => find_joined(value, keys, path, pointers),
        }
        path.truncate(length);
    };
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                descend(path, &key.replace('~', "~0").replace('/', "~1"), value);
            }
        }
        Value::Array(entries) => {
            for (at, value) in entries.iter().enumerate() {
                descend(path, &at.to_string(), value);
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

/// Takes the strings at these pointers out of a value, up to the first that is missing.
fn take_strings(value: &mut Value, pointers: &[String]) -> Vec<String> {
    pointers.iter().map_while(|pointer| string_at(value, pointer).map(std::mem::take)).collect()
}

fn push_strings(value: &mut Value, pointers: &[String], texts: &[String]) {
    for (pointer, text) in pointers.iter().zip(texts) {
        string_at(value, pointer).into_iter().for_each(|joined| joined.push_str(text));
    }
}
