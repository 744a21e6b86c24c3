//! The places of an event in which another one may have something else.

use std::fmt;

use advisor_core::DeltaKind;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::wire::{CHOICE_KEYS, CountOf, DELTA_KEYS, EVENT_KEYS, Object, Str, count_named};

/// Where a value stands in an event: the string without its quotes, or the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: PlaceKind,
    /// Other events have something else here. Where they do not, it is quicker to compare it.
    pub(super) differs: bool,
}

/// What stands in a [`Place`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceKind {
    /// The next piece of what the answer says: a string.
    Said,
    /// A string that nobody reads.
    Word,
    /// A whole number that nobody reads.
    Number,
    /// A token count.
    Count(CountOf),
}

impl Place {
    pub(super) fn of(self, event: &str) -> Option<&str> {
        event.get(self.start..self.end)
    }
}

/// The places of an event that says one thing, in order; `None` if it is not known where it says it.
pub(super) fn places_of(event: &str, said: &DeltaKind) -> Option<Vec<Place>> {
    let mut search = Search { event, places: Vec::new() };
    for (key, value) in fields(event)? {
        match key.text()? {
            "choices" => search.choice(only_entry(value)?, said)?,
            "usage" => search.counts(value, &[])?,
            // An event that says nothing of its origin repeats what is known, if it has a word for it at all.
            "id" | "model" if is_text(value) => search.unread(value),
            key if EVENT_KEYS.contains(&key) => {}
            _ => search.unread(value),
        }
    }
    let mut places = search.places;
    places.sort_by_key(|place| place.start);
    let said = places.iter().filter(|place| place.kind == PlaceKind::Said).count();
    (said == 1).then_some(places)
}

struct Search<'a> {
    event: &'a str,
    places: Vec<Place>,
}

impl Search<'_> {
    fn choice(&mut self, choice: &RawValue, said: &DeltaKind) -> Option<()> {
        for (key, value) in fields(choice.get())? {
            match key.text()? {
                "delta" => self.delta(value, said)?,
                key if CHOICE_KEYS.contains(&key) => {}
                _ => self.unread(value),
            }
        }
        Some(())
    }

    fn delta(&mut self, delta: &RawValue, said: &DeltaKind) -> Option<()> {
        let fields = fields(delta.get())?;
        let has = |name: &str| fields.iter().any(|(key, value)| key.text() == Some(name) && is_text(value));
        // A number there is read as text, too.
        let is_odd = |value: &RawValue| !value.get().starts_with('"') && value.get() != "null";
        let of_reasoning = |key: &Str<'_>| matches!(key.text(), Some("reasoning_content" | "reasoning"));
        if fields.iter().any(|(key, value)| of_reasoning(key) && is_odd(value)) {
            return None;
        }
        // Of two fields for reasoning this one goes first, if it says something.
        let has_content = has("reasoning_content");
        let has_reasoning = has_content || has("reasoning");
        for (key, value) in &fields {
            match (key.text()?, said) {
                ("content", DeltaKind::Text(_)) | ("refusal", DeltaKind::Refusal(_)) => self.said(value)?,
                ("reasoning_content", DeltaKind::Reasoning(_)) if has_content => self.said(value)?,
                ("reasoning", DeltaKind::Reasoning(_)) if has_content => self.unread(value),
                ("reasoning", DeltaKind::Reasoning(_)) if has_reasoning => self.said(value)?,
                ("content", DeltaKind::Reasoning(_)) if !has_reasoning => self.thought(value)?,
                ("tool_calls", DeltaKind::ToolCalls(_) | DeltaKind::Arguments { .. }) => {
                    self.call(only_entry(value)?)?
                }
                (key, _) if DELTA_KEYS.contains(&key) => {}
                _ => self.unread(value),
            }
        }
        Some(())
    }

    /// The text of a content whose only part is what the model thinks, as Mistral sends it.
    fn thought(&mut self, content: &RawValue) -> Option<()> {
        let thoughts = field(only_entry(content)?, "thinking")?;
        self.said(field(only_entry(thoughts)?, "text")?)
    }

    fn call(&mut self, call: &RawValue) -> Option<()> {
        let function = field(call, "function")?;
        self.said(field(function, "arguments")?)
    }

    fn counts(&mut self, counts: &RawValue, path: &[&str]) -> Option<()> {
        let Some(fields) = fields(counts.get()) else { return Some(()) };
        for (key, value) in fields {
            let path = [path, &[key.text()?]].concat();
            match count_named(&path) {
                Some(count) => self.add_number(value, PlaceKind::Count(count)),
                None if path.len() < 2 => self.counts(value, &path)?,
                None => {}
            }
        }
        Some(())
    }

    fn said(&mut self, value: &RawValue) -> Option<()> {
        is_text(value).then(|| self.add(value, 1, PlaceKind::Said, true))
    }

    fn unread(&mut self, value: &RawValue) {
        if value.get().starts_with('"') {
            self.add(value, 1, PlaceKind::Word, false);
        } else {
            self.add_number(value, PlaceKind::Number);
        }
    }

    fn add_number(&mut self, value: &RawValue, kind: PlaceKind) {
        if value.get().bytes().all(|byte| byte.is_ascii_digit()) {
            self.add(value, 0, kind, false);
        }
    }

    fn add(&mut self, value: &RawValue, quote: usize, kind: PlaceKind, differs: bool) {
        let from = value.get().as_ptr().addr() - self.event.as_ptr().addr();
        let (start, end) = (from + quote, from + value.get().len() - quote);
        self.places.push(Place { start, end, kind, differs });
    }
}

/// Whether it is a string that is not empty.
fn is_text(value: &RawValue) -> bool {
    value.get().starts_with('"') && value.get().len() > "\"\"".len()
}

/// The field of this name, of which there is one.
fn field<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let mut named = fields(object.get())?.into_iter().filter(|(key, _)| key.text() == Some(name));
    let (_, value) = named.next()?;
    named.next().is_none().then_some(value)
}

/// The entry of a list that has only one.
fn only_entry(list: &RawValue) -> Option<&RawValue> {
    match serde_json::from_str::<Vec<&RawValue>>(list.get()).ok()?.as_slice() {
        [entry] => Some(entry),
        _ => None,
    }
}

/// The fields of an object, each with its JSON; `None` if it is none.
fn fields(json: &str) -> Option<Vec<(Str<'_>, &RawValue)>> {
    let object: Object<Fields<'_>> = serde_json::from_str(json).ok()?;
    Some(object.0?.0)
}

struct Fields<'a>(Vec<(Str<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            fields.push(entry);
        }
        Ok(Fields(fields))
    }
}
