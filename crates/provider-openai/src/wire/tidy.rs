//! Valid JSON that the reader of the usual event refuses: characters cut in two, and keys that repeat.
//!
//! Nearly no event needs this, so it is tried only for one that could not be read.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The first half of a character outside the Basic Multilingual Plane, where a server cut a text between the two: the second half
/// begins the next one.
pub(crate) type Half = Option<String>;

/// The same JSON in a form that any reader takes; `None` if it is malformed.
///
/// A first half at the end of a text goes into `half`, and comes back before the second half that begins a later text, of whatever
/// choice or field; if none does, nothing is left of it. Any other half becomes U+FFFD. Of several equal keys the last counts.
pub(crate) fn tidy(json: &str, half: &mut Half) -> Option<String> {
    let value: Value = serde_json::from_str(&with_whole_characters(json, half)).ok()?;
    Some(value.to_string())
}

/// Reads JSON of any kind, tidied if need be; `None` if it is malformed or something else.
pub(crate) fn read<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok().or_else(|| serde_json::from_str(&tidy(json, &mut None)?).ok())
}

fn with_whole_characters(json: &str, half: &mut Half) -> String {
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        whole.push_str(before);
        let length = match (surrogate(escape), escape.get(6..).unwrap_or_default()) {
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
            (Some(Surrogate::First), after) if surrogate(after) == Some(Surrogate::Second) => 12,
            (Some(Surrogate::First), after) if after.starts_with('"') => {
                *half = escape.get(..6).map(str::to_owned);
                rest = after;
                continue;
            }
            (Some(Surrogate::Second), _) if before.ends_with('"') && half.is_some() => {
                whole.push_str(&half.take().unwrap_or_default());
                6
            }
            (Some(_), after) => {
                whole.push_str("\\ufffd");
                rest = after;
                continue;
            }
        };
        let (kept, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        whole.push_str(kept);
        rest = after;
    }
    whole.push_str(rest);
    whole
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surrogate {
    First,
    Second,
}

/// The half character that `json` begins with, written as an escape.
fn surrogate(json: &str) -> Option<Surrogate> {
    match u16::from_str_radix(json.strip_prefix("\\u")?.get(..4)?, 16).ok()? {
        0xD800..0xDC00 => Some(Surrogate::First),
        0xDC00..0xE000 => Some(Surrogate::Second),
        _ => None,
    }
}
