//! What an object beside the parts of an answer says.

use serde_json::{Map, Value};

use super::error::{is_something, status};

/// The fields that call by a word what their object is.
const CALLED_BY: [&str; 4] = ["type", "object", "status", "code"];
/// What is in the words for a failure, without what stands between their letters.
const FAILED: [&str; 24] = [
    "abort",
    "arrear",
    "badrequest",
    "blocked",
    "cancel",
    "contentfilter",
    "denied",
    "error",
    "exceeded",
    "exception",
    "exhausted",
    "fail",
    "forbidden",
    "insufficient",
    "invalid",
    "notfound",
    "overload",
    "ratelimit",
    "throttl",
    "timeout",
    "toomany",
    "unauth",
    "unavailable",
    "violation",
];
/// What is in the words for work that goes on.
const GOES_ON: [&str; 8] =
    ["heartbeat", "pending", "ping", "processing", "progress", "queue", "running", "status"];

/// What an object says by which of its fields; the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    /// The server failed: there is an error, a word or an HTTP status for one, or no success.
    Failed,
    /// The server is still at it, and says how far.
    GoesOn,
    /// Words that could mean either. In place of an answer they are why there is none.
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
            // FastAPI's word for an error.
            Self::Failed
        } else {
            Self::Words
        }
    }
}

fn letters(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}
