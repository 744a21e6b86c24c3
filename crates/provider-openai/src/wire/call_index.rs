//! The number by which a server tells the calls of one answer apart.

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::loose::Number;

/// Numbers from here on are held as they are. No server uses those below, so they stand for what is written otherwise.
const LOWEST: i64 = i64::MIN / 2;

/// The index of a call. One that was written is never absent: a piece that is known by it alone would go to another call.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum CallIndex<'a> {
    /// Neither `null` nor the empty text says anything.
    #[default]
    Absent,
    /// Signed: some servers count from -1 (Q5).
    Number(i64),
    /// Anything else, as it is spelled: a number that 64 bits do not hold, one that is not whole, or no number.
    Odd(Cow<'a, str>),
}

impl<'a> CallIndex<'a> {
    /// The index that this JSON is. A number in a text is that number.
    pub(super) fn of(json: &'a str) -> Self {
        if let Some(number) = json.parse().ok().filter(|number| *number >= LOWEST) {
            return Self::Number(number);
        }
        let number: Number = serde_json::from_str(json).unwrap_or_default();
        match number.0.filter(|number| *number >= LOWEST) {
            Some(number) => Self::Number(number),
            None if matches!(json, "null" | "\"\"") => Self::Absent,
            // Half of a character is in no text: what holds one stays in its quotes.
            None => Self::Odd(text_of(json).unwrap_or(Cow::Borrowed(json))),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for CallIndex<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer).map(|json| Self::of(json.get()))
    }
}

fn text_of(json: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str(json).ok().map(Cow::Owned)
}

/// The same JSON in which numbers named `index` are texts if they are odd, and so is any other value of this name that would not
/// [stay](stays) what it is: what happens to such values elsewhere would make two indexes of calls one.
pub(super) fn with_odd_indexes_as_texts(json: &str) -> Cow<'_, str> {
    const KEY: &str = "\"index\"";
    let mut kept = String::new();
    let mut rest = json;
    while let Some((before, value)) = next_value_of(KEY, rest) {
        kept.push_str(before);
        match CallIndex::of(value) {
            CallIndex::Odd(spelling) if !stays(value) => {
                kept.push_str(&serde_json::Value::from(spelling).to_string())
            }
            _ => kept.push_str(value),
        }
        rest = rest.get(before.len() + value.len()..).unwrap_or_default();
    }
    if kept.is_empty() {
        return Cow::Borrowed(json);
    }
    Cow::Owned(kept + rest)
}

/// Whether a value that is no number is the same one, but for blanks and the order of its keys, once it was read and written.
fn stays(json: &str) -> bool {
    let bytes_of = |json: &str| {
        let mut bytes: Vec<u8> = json.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        bytes.sort_unstable();
        bytes
    };
    let is_number = json.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let read = || serde_json::from_str::<serde_json::Value>(json).ok();
    !is_number && read().is_some_and(|value| bytes_of(&value.to_string()) == bytes_of(json))
}

/// What stands before the value of the next such key in valid JSON, and the value.
fn next_value_of<'a>(key: &str, json: &'a str) -> Option<(&'a str, &'a str)> {
    json.match_indices(key).find_map(|(at, _)| {
        let behind = json.get(at + key.len()..)?.trim_start();
        let value = behind.strip_prefix(':')?;
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<&RawValue>();
        let value = values.next()?.ok()?.get();
        let start = value.as_ptr().addr() - json.as_ptr().addr();
        Some((json.get(..start)?, value))
    })
}
