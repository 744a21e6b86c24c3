//! The meaning of an object that is no part of an answer.

use serde_json::{Map, Value};

use super::error::{is_something, status};

/// The fields that name the kind of their object.
const CALLED_BY: [&str; 4] = ["type", "object", "status", "code"];
/// Parts of words for a failure, reduced to letters and digits.
const FAILED: [&str; 24] = [
    "abort", "arrear", "badrequest", "blocked", "cancel", "contentfilter", "denied", "error", "exceeded",
    "exception", "exhausted", "fail", "forbidden", "insufficient", "invalid", "notfound", "overload",
    "ratelimit", "throttl", "timeout", "toomany", "unauth", "unavailable", "violation",
];
/// Parts of words for work in progress.
const GOES_ON: [&str; 8] =
    ["heartbeat", "pending", "ping", "processing", "progress", "queue", "running", "status"];

/// The meaning of an object; the first one that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    /// The server failed: an error, a word or an HTTP status for one, or `success: false`.
    Failed,
    /// The server is still working, and reports its progress.
    GoesOn,
    /// A message that could mean either. In place of an answer it is the reason why there is none.
    Words,
}

impl Says {
    pub(crate) fn of(fields: &Map<String, Value>) -> Self {
        let words = CALLED_BY.map(|key| letters(fields.get(key).and_then(Value::as_str).unwrap_or_default()));
        let called = |table: &[&str]| table.iter().any(|part| words.iter().any(|word| word.contains(part)));
        let holds = |key: &str| fields.get(key).is_some_and(|value| is_something(&value));
        let unsuccessful = fields.get("success") == Some(&Value::Bool(false));
        if holds("error") || holds("errors") || unsuccessful || called(&FAILED) || status(fields).is_some() {
            Self::Failed
        } else if called(&GOES_ON) {
            Self::GoesOn
        } else if holds("detail") {
            // FastAPI reports errors under `detail`.
            Self::Failed
        } else {
            Self::Words
        }
    }
}

fn letters(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}
