//! The meaning of an object that is no part of an answer.

use serde_json::{Map, Value};

use super::wire_format::Meaning;
use crate::failure::{Report, is_something, status};

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

/// What the fields of an object say of its meaning; the first one that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// The server failed: an error, a word or an HTTP status for one, or `success: false`.
    Failed,
    /// The server is still working, and reports its progress.
    GoesOn,
    /// Neither.
    None,
}

impl Meaning {
    /// Returns the meaning of JSON that is no part of an answer: a failure, a report of progress, a message that
    /// could be either, or unknown.
    ///
    /// A list or a text is never a report of progress.
    #[must_use]
    pub fn from_json(value: &Value) -> Self {
        let Some(report) = Report::find(value).map(Box::new) else { return Self::Unknown };
        match value.as_object().map_or(Sign::Failed, Sign::from_fields) {
            Sign::Failed => Self::Failure(report),
            Sign::GoesOn => Self::Status(report),
            Sign::None => Self::Message(report),
        }
    }
}

impl Sign {
    fn from_fields(fields: &Map<String, Value>) -> Self {
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
            Self::None
        }
    }
}

fn letters(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn message_failure_and_progress_are_told_apart() {
        let cases = [
            // A failure.
            (json!({"error": "m"}), Sign::Failed),
            (json!({"errors": [{"message": "m"}]}), Sign::Failed),
            (json!({"detail": "m"}), Sign::Failed),
            (json!({"type": "server_error", "message": "m"}), Sign::Failed),
            (json!({"object": "error", "message": "m"}), Sign::Failed),
            (json!({"status": "failed", "message": "m"}), Sign::Failed),
            (json!({"code": "Throttling", "message": "m"}), Sign::Failed),
            (json!({"code": "RATE_LIMIT", "message": "m"}), Sign::Failed),
            (json!({"code": "insufficient_quota", "message": "m"}), Sign::Failed),
            (json!({"code": "ModelNotFound", "message": "m"}), Sign::Failed),
            (json!({"code": 400, "message": "m"}), Sign::Failed),
            (json!({"code": "599", "message": "m"}), Sign::Failed),
            (json!({"status": 429, "message": "m"}), Sign::Failed),
            (json!({"success": false, "message": "insufficient balance"}), Sign::Failed),
            // Also beside words for progress.
            (json!({"type": "status", "code": 503, "message": "m"}), Sign::Failed),
            (json!({"type": "progress", "error": "m"}), Sign::Failed),
            (json!({"type": "status", "success": false, "message": "m"}), Sign::Failed),
            (json!({"status": "queue_exceeded", "message": "m"}), Sign::Failed),
            // Progress.
            (json!({"type": "status", "message": "m"}), Sign::GoesOn),
            (json!({"type": "status", "detail": "m"}), Sign::GoesOn),
            (json!({"type": "ping", "msg": "m", "code": 0}), Sign::GoesOn),
            (json!({"object": "progress", "message": "m", "code": 200, "status": "running"}), Sign::GoesOn),
            (json!({"status": "QUEUED", "message": "m"}), Sign::GoesOn),
            (json!({"type": "queue", "error": null, "success": true, "message": "m"}), Sign::GoesOn),
            // Neither.
            (json!({"message": "m"}), Sign::None),
            (json!({"code": "OK", "message": "still working"}), Sign::None),
            (json!({"code": 20000, "message": "ok"}), Sign::None),
            (json!({"code": "1302", "message": "m"}), Sign::None),
            (json!({"code": 399, "status": 600, "message": "m"}), Sign::None),
            (json!({"success": true, "message": "m"}), Sign::None),
        ];
        for (message, expected) in cases {
            let fields = message.as_object().expect("an object");
            assert_eq!(Sign::from_fields(fields), expected, "{message}");
        }
    }
}
