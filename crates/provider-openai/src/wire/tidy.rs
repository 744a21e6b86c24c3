//! Valid JSON that the reader of the usual event refuses: characters cut in two, keys that repeat, and [extremes](super::extremes).
//!
//! Nearly no event needs this, so it is tried only for one that could not be read.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call_index::with_odd_indexes_as_texts;
use super::extremes::without_extremes;

/// The first half of a character outside the Basic Multilingual Plane, where a server cut a text between the two: the second half
/// begins the next text of the same place.
#[derive(Debug)]
pub(crate) struct Half {
    escape: String,
    /// What its event says of the choice up to the text that it was in.
    before: String,
    /// The numbers that are told only behind that text.
    numbers: Vec<String>,
}

/// The same JSON in a form that any reader takes; `None` if it is malformed.
///
/// A first half at the end of a text goes into `half`, and comes back before the second half that the next event's text in the
/// same choice, field and call begins with; if none does, nothing is left of it. Any other half becomes U+FFFD: better none than a
/// character that nobody sent. Of several equal keys the last counts. A number or a nesting that cannot be held becomes `null`;
/// an index of a call becomes the text that it is spelled as.
pub(crate) fn tidy(json: &str, half: &mut Option<Half>) -> Option<String> {
    // This checks the grammar alone: it converts nothing, and does not recurse.
    serde_json::from_str::<&RawValue>(json).ok()?;
    let whole = with_whole_characters(&with_odd_indexes_as_texts(json), half);
    let value: Value = serde_json::from_str(&without_extremes(&whole)).ok()?;
    Some(value.to_string())
}

/// Reads JSON of any kind, tidied if need be; `None` if it is malformed or something else.
pub(crate) fn read<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok().or_else(|| serde_json::from_str(&tidy(json, &mut None)?).ok())
}

fn with_whole_characters(json: &str, half: &mut Option<Half>) -> String {
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    let choices = json.find("\"choices\"").unwrap_or(json.len());
    let held = half.take();
    let mut cut = None;
    // Where the text begins that is being read.
    let mut from = 0;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        if let Some(quote) = before.rfind('"') {
            from = json.len() - rest.len() + quote + 1;
        }
        whole.push_str(before);
        // Nothing before the choices is a text that goes on.
        let place = json.get(choices..from);
        let length = match (surrogate(escape), escape.get(6..).unwrap_or_default()) {
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
            (Some(Surrogate::First), after) if surrogate(after) == Some(Surrogate::Second) => 12,
            (Some(Surrogate::First), after) if after.starts_with('"') => {
                cut = place.map(|place| (place, escape));
                rest = after;
                continue;
            }
            (Some(Surrogate::Second), after)
                if before.ends_with('"') && held.as_ref().is_some_and(|held| held.fits(place, after)) =>
            {
                whole.push_str(held.as_ref().map_or("", |held| &held.escape));
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
    *half = cut.map(|(place, escape)| Half::new(place, escape));
    whole
}

impl Half {
    /// The half that `escape` begins with, at the end of the text behind `before`.
    fn new(before: &str, escape: &str) -> Self {
        let (escape, after) = escape.split_at_checked(6).unwrap_or((escape, ""));
        let numbers = numbers(after).map(str::to_owned).collect();
        Self { escape: escape.to_owned(), before: before.to_owned(), numbers }
    }

    /// Whether the text between `before` and `after` is in the same place.
    fn fits(&self, before: Option<&str>, after: &str) -> bool {
        before == Some(&self.before) && numbers(after).eq(self.numbers.iter())
    }
}

/// The numbers of choices and calls, as they are written.
fn numbers(json: &str) -> impl Iterator<Item = &str> {
    json.split("\"index\"").skip(1).filter_map(|number| number.split([',', '}']).next())
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
