//! Repair of valid JSON that the usual reader refuses.
//!
//! Very few events need this, so it is tried only when reading has failed.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call_index::with_odd_indexes_as_texts;
use provider_http::json::repair::{Surrogate, without_unrepresentable};

/// The high surrogate of a pair that a server cut in two. The low one begins the next text at the same place.
///
/// OpenClaw's gateway cuts arguments after 256 UTF-16 code units (openclaw/openclaw#115536).
#[derive(Debug)]
pub(crate) struct PendingSurrogate {
    escape: String,
    /// The event's JSON from the choices to the text with the surrogate.
    before: String,
    /// The indexes that follow that text.
    numbers: Vec<String>,
}

/// Rewrites JSON in a form that any reader accepts; `None` if it is malformed.
///
/// - A high surrogate at the end of a text is stored in `pending`. It is inserted before the low surrogate that
///   begins the next event's text in the same choice, field and call. Without one it is dropped.
/// - Any other lone surrogate becomes U+FFFD, because no character is better than one that the server did not
///   send. Models behind OpenRouter send such (Kohaku-Lab/KohakuTerrarium#48).
/// - Of equal keys the last counts. NVIDIA's endpoint repeats `reasoning_content`
///   (tinyhumansai/openhuman#4204).
/// - A number out of range or a value nested too deep becomes `null`, as fault FP-26 demands.
/// - An odd index of a call becomes a text with its spelling. Law T6 demands that different ones stay different.
pub(crate) fn repair(json: &str, pending: &mut Option<PendingSurrogate>) -> Option<String> {
    // This checks only the grammar: it converts nothing, and does not recurse.
    serde_json::from_str::<&RawValue>(json).ok()?;
    let whole = with_whole_characters(&with_odd_indexes_as_texts(json), pending);
    let value: Value = serde_json::from_str(&without_unrepresentable(&whole)).ok()?;
    Some(value.to_string())
}

/// Reads JSON of any kind, repaired if necessary; `None` if it is malformed or of another type.
pub(crate) fn read<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok().or_else(|| serde_json::from_str(&repair(json, &mut None)?).ok())
}

fn with_whole_characters(json: &str, pending: &mut Option<PendingSurrogate>) -> String {
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    let choices = json.find("\"choices\"").unwrap_or(json.len());
    let held = pending.take();
    let mut cut = None;
    // The position where the current text begins.
    let mut from = 0;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        if let Some(quote) = before.rfind('"') {
            from = json.len() - rest.len() + quote + 1;
        }
        whole.push_str(before);
        // Text before the choices does not continue in the next event.
        let place = json.get(choices..from);
        let (kept, after) = match (Surrogate::at(escape), escape.get(6..).unwrap_or_default()) {
            (None, _) => split(escape, 1 + escape.chars().nth(1).map_or(0, char::len_utf8)),
            (Some(Surrogate::High), after) if Surrogate::at(after) == Some(Surrogate::Low) => {
                split(escape, 12)
            }
            (Some(Surrogate::High), after) if after.starts_with('"') => {
                cut = place.map(|place| (place, escape));
                ("", after)
            }
            (Some(Surrogate::Low), after)
                if before.ends_with('"') && held.as_ref().is_some_and(|held| held.fits(place, after)) =>
            {
                whole.push_str(held.as_ref().map_or("", |held| &held.escape));
                split(escape, 6)
            }
            (Some(_), after) => ("\\ufffd", after),
        };
        whole.push_str(kept);
        rest = after;
    }
    whole.push_str(rest);
    *pending = cut.map(|(place, escape)| PendingSurrogate::new(place, escape));
    whole
}

/// Splits `json` at this byte, or at its end.
fn split(json: &str, at: usize) -> (&str, &str) {
    json.split_at_checked(at).unwrap_or((json, ""))
}

impl PendingSurrogate {
    /// Creates the surrogate that `escape` begins with, at the end of the text after `before`.
    fn new(before: &str, escape: &str) -> Self {
        let (escape, after) = split(escape, 6);
        let numbers = numbers(after).map(str::to_owned).collect();
        Self { escape: escape.to_owned(), before: before.to_owned(), numbers }
    }

    /// Checks whether the text between `before` and `after` is at the same place.
    fn fits(&self, before: Option<&str>, after: &str) -> bool {
        before == Some(&self.before) && numbers(after).eq(self.numbers.iter())
    }
}

/// Returns the indexes of choices and calls, as written.
fn numbers(json: &str) -> impl Iterator<Item = &str> {
    json.split("\"index\"").skip(1).filter_map(|number| number.split([',', '}']).next())
}
