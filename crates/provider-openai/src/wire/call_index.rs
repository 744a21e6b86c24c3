//! The number by which a server distinguishes the calls of one answer.

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use provider_http::json::lenient::Number;

/// The lowest number that is kept unchanged. No server uses lower ones, so they replace indexes that are no
/// numbers.
const LOWEST: i64 = i64::MIN / 2;

/// The index of a call. A written index is never absent: a piece identified by it alone would join another
/// call.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum CallIndex<'a> {
    /// No index: neither `null` nor the empty text is one.
    #[default]
    Absent,
    /// Signed: some servers count from -1 (Q5).
    Number(i64),
    /// Any other index, as spelled: a number beyond 64 bits, a number that is not whole, or no number.
    Odd(Cow<'a, str>),
}

impl<'a> CallIndex<'a> {
    /// Returns the index in this JSON. A number in a text is that number.
    pub(super) fn from_json(json: &'a str) -> Self {
        if let Some(number) = json.parse().ok().filter(|number| *number >= LOWEST) {
            return Self::Number(number);
        }
        let number: Number = serde_json::from_str(json).unwrap_or_default();
        match number.0.filter(|number| *number >= LOWEST) {
            Some(number) => Self::Number(number),
            None if matches!(json, "null" | "\"\"") => Self::Absent,
            // No text holds a lone surrogate: JSON with one keeps its quotes.
            None => Self::Odd(text_of(json).unwrap_or(Cow::Borrowed(json))),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for CallIndex<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer).map(|json| Self::from_json(json.get()))
    }
}

fn text_of(json: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str(json).ok().map(Cow::Owned)
}

/// Replaces odd numbers named `index` with texts, and other values of this name that would not [stay](stays)
/// the same. Otherwise later conversions could make two indexes equal.
pub(super) fn with_odd_indexes_as_texts(json: &str) -> Cow<'_, str> {
    const KEY: &str = "\"index\"";
    let mut kept = String::new();
    let mut rest = json;
    while let Some((before, value)) = next_value_of(KEY, rest) {
        kept.push_str(before);
        match CallIndex::from_json(value) {
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

/// Checks whether a value survives parsing and writing, apart from blanks and the order of keys. Numbers never
/// pass.
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

/// Returns the text before the value of the next such key in valid JSON, and the value.
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
