//! Data that rides on reasoning, piece by piece: the pieces that differ only in their text are joined to one.

use advisor_core::{Delta, DeltaKind};
use serde_json::Value;

use super::fields::Field;

/// The data that came last, as long as more of it may come.
pub(super) struct JoinedData {
    fields: &'static Field,
    /// The keys of the strings that are joined.
    keys: Vec<&'static str>,
    run: Option<Run>,
}

struct Run {
    delta: Delta,
    /// What comes behind its one joined string.
    more: String,
    /// The template whose events go on with it.
    template: Option<u64>,
}

impl JoinedData {
    pub(super) fn new(fields: &'static Field) -> Self {
        Self { fields, keys: Vec::new(), run: None }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.run.is_none()
    }

    /// Takes the next data. Returns what came before if this is no more of it.
    pub(super) fn add(&mut self, delta: Delta, template: Option<u64>) -> Option<Delta> {
        if self.keys.is_empty() {
            collect_keys(self.fields, &mut self.keys);
        }
        if let (Some(run), Some(more)) = (&mut self.run, value_of(&delta)) {
            run.write_more(&self.keys);
            let same_place = (run.delta.choice, run.delta.block) == (delta.choice, delta.block);
            if same_place
                && let Some(value) = value_of_mut(&mut run.delta)
                && differ_only_in(value, more, &self.keys)
            {
                join(value, more, &self.keys);
                run.template = template;
                return None;
            }
        }
        let before = self.end();
        self.run = Some(Run { delta, more: String::new(), template });
        before
    }

    /// Appends a text to the data if this template's events go on with it.
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

    /// Returns the data: nothing is added to it any more.
    pub(super) fn end(&mut self) -> Option<Delta> {
        let mut run = self.run.take()?;
        run.write_more(&self.keys);
        Some(run.delta)
    }

    /// Whether this is data whose only string to be joined is `text`.
    pub(super) fn joins_only(&mut self, value: &Value, text: &str) -> bool {
        if self.keys.is_empty() {
            collect_keys(self.fields, &mut self.keys);
        }
        let mut found = Vec::new();
        strings_under(value, &self.keys, &mut found);
        found == [text]
    }

    /// The data of a template with another text in place of its joined string.
    pub(super) fn with_text(&self, mut delta: Delta, text: &str) -> Delta {
        if let Some(value) = value_of_mut(&mut delta) {
            change(value, &self.keys, &mut |joined| text.clone_into(joined));
        }
        delta
    }
}

impl Run {
    fn write_more(&mut self, keys: &[&str]) {
        if !self.more.is_empty() {
            let more = std::mem::take(&mut self.more);
            if let Some(value) = value_of_mut(&mut self.delta) {
                change(value, keys, &mut |joined| joined.push_str(&more));
            }
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

/// Whether two values are the same but for the strings that are joined, of which there is one at least.
fn differ_only_in(one: &Value, other: &Value, keys: &[&str]) -> bool {
    let mut found = Vec::new();
    strings_under(one, keys, &mut found);
    !found.is_empty() && same_beside(one, other, keys)
}

fn same_beside(one: &Value, other: &Value, keys: &[&str]) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let same = |(key, value): (&String, &Value)| match (value, other.get(key)) {
                (Value::String(_), Some(Value::String(_))) if keys.contains(&key.as_str()) => true,
                (value, Some(other)) => same_beside(value, other, keys),
                (_, None) => false,
            };
            one.len() == other.len() && one.iter().all(same)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| same_beside(one, other, keys))
        }
        (one, other) => one == other,
    }
}

/// Appends the strings that are joined to those of a value that is the same beside them.
fn join(value: &mut Value, more: &Value, keys: &[&str]) {
    match (value, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (key, value) in fields {
                match (value, more.get(key)) {
                    (Value::String(text), Some(Value::String(more))) if keys.contains(&key.as_str()) => {
                        text.push_str(more);
                    }
                    (value, Some(more)) => join(value, more, keys),
                    (_, None) => {}
                }
            }
        }
        (Value::Array(entries), Value::Array(more)) => {
            entries.iter_mut().zip(more).for_each(|(entry, more)| join(entry, more, keys));
        }
        _ => {}
    }
}

fn strings_under<'a>(value: &'a Value, keys: &[&str], found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if keys.contains(&key.as_str()) => found.push(text),
                    value => strings_under(value, keys, found),
                }
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| strings_under(entry, keys, found)),
        _ => {}
    }
}

fn change(value: &mut Value, keys: &[&str], to: &mut impl FnMut(&mut String)) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if keys.contains(&key.as_str()) => to(text),
                    value => change(value, keys, to),
                }
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| change(entry, keys, to)),
        _ => {}
    }
}
