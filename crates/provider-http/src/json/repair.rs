//! Reading of valid JSON that the usual parser refuses.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

pub use super::unrepresentable::without_unrepresentable;

/// Reads JSON, repaired if necessary. One odd value must not fail an answer:
///
/// - a lone surrogate becomes U+FFFD, because no character is better than one that the server did not send;
/// - of equal keys the last counts;
/// - a number out of range or a value nested too deep becomes `null`.
///
/// ```
/// use provider_http::json::repair;
/// use serde_json::{Value, json};
///
/// let event: Value = repair::read(r#"{"text":"a\ud83d","n":1e999}"#)?;
/// assert_eq!(event, json!({"text": "a\u{fffd}", "n": null}));
/// assert!(repair::read::<Value>("{").is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// If it is malformed, or of another type.
pub fn read<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    let error = match serde_json::from_str(json) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    // This checks only the grammar: it converts nothing, and does not recurse.
    if serde_json::from_str::<&RawValue>(json).is_err() {
        return Err(error);
    }
    let value: Value = serde_json::from_str(&without_unrepresentable(&without_lone_surrogates(json)))?;
    serde_json::from_value(value)
}

/// Returns JSON with U+FFFD in place of each lone surrogate.
#[must_use]
pub fn without_lone_surrogates(json: &str) -> String {
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        whole.push_str(before);
        let after = escape.get(6..).unwrap_or_default();
        let length = match (Surrogate::at(escape), Surrogate::at(after)) {
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
            (Some(Surrogate::High), Some(Surrogate::Low)) => 12,
            (Some(_), _) => {
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

/// Half of a character beyond 16 bits, written as an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surrogate {
    /// The first half.
    High,
    /// The second half.
    Low,
}

impl Surrogate {
    /// Returns the surrogate that `json` begins with.
    pub(crate) fn at(json: &str) -> Option<Self> {
        match u16::from_str_radix(json.strip_prefix("\\u")?.get(..4)?, 16).ok()? {
            0xD800..0xDC00 => Some(Self::High),
            0xDC00..0xE000 => Some(Self::Low),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn odd_values_are_read_and_malformed_ones_refused() {
        for (odd, expected) in [
            (r#"{"a":"\ud83d\ude00"}"#, json!({"a": "😀"})),
            (r#"{"a":"\ud83d"}"#, json!({"a": "\u{fffd}"})),
            (r#"{"a":"\ude00x","b":1e999}"#, json!({"a": "\u{fffd}x", "b": null})),
            (r#"["\ud83d\ud83d\ude00\\ud83d"]"#, json!(["\u{fffd}😀\\ud83d"])),
            (r#"{"a":1,"a":2}"#, json!({"a": 2})),
        ] {
            assert_eq!(read::<Value>(odd).expect(odd), expected);
        }
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        assert!(read::<Value>(&deep).is_ok());
        for malformed in ["", "{", r#"{"a":"\ud83"}"#, "nul", "{} {}"] {
            assert!(read::<Value>(malformed).is_err(), "{malformed}");
        }
        assert!(read::<Vec<u8>>(r#"{"a":1}"#).is_err());
    }

    proptest! {
        /// Values that the usual parser reads stay the same; of other texts, only JSON by its grammar is read.
        #[test]
        fn repair_reads_only_json(json in "[{}\\[\\]\":,a0e \\\\ud8.-]{0,24}|\"(\\\\ud8[0-9a-f]{2}|\\\\ude00|a|\\\\n){0,6}\"") {
            let read = read::<Value>(&json).ok();
            match serde_json::from_str::<Value>(&json) {
                Ok(value) => prop_assert_eq!(read, Some(value)),
                Err(_) => prop_assert_eq!(read.is_some(), serde_json::from_str::<&RawValue>(&json).is_ok()),
            }
        }
    }
}
