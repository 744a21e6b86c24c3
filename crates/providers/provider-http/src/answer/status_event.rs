//! Objects of a stream that hold a message in place of a part of an answer.

use serde_json::Value;

use super::wire_format::Meaning;
use crate::failure::{Report, is_something, status};

/// The fields that name the kind of their object.
const KIND_FIELDS: [&str; 4] = ["type", "object", "status", "code"];
/// Parts of words for a failure, reduced to letters and digits, in errors without an `error` object around them. The
/// names are those of the servers; a gateway may leave the object out.
const FAILURE_WORDS: [&[&str]; 7] = [
    // DashScope: `Arrearage`, `Throttling.RateQuota`, `DataInspectionFailed`, `RequestTimeOut`, `InvalidParameter`,
    // `AccessDenied`, `ModelNotFound` (help.aliyun.com/zh/dashscope/return-status-code-description).
    &["arrear", "throttl", "fail", "timeout", "invalid", "denied", "notfound"],
    // Cerebras: `too_many_requests_error`, `queue_exceeded` (explyt/explyt#35).
    &["toomany", "exceeded"],
    // Mistral, like older versions of vLLM: `"object":"error"` beside `rate_limited` (raycast/extensions#31107) or
    // `BadRequestError`.
    &["error", "ratelimit", "badrequest"],
    // Anthropic: `overloaded_error`.
    &["overload"],
    // OpenAI and Azure: `insufficient_quota`, `content_filter`, `content_policy_violation`, and the status `cancelled`.
    &["insufficient", "contentfilter", "violation", "cancel"],
    // Google: `ABORTED`, `RESOURCE_EXHAUSTED`, `UNAUTHENTICATED`, `UNAVAILABLE` (google/rpc/code.proto).
    &["abort", "exhausted", "unauth", "unavailable"],
    // Bedrock: `ValidationException` and others.
    &["exception"],
];
/// Parts of words for work in progress.
const PROGRESS_WORDS: [&str; 8] =
    ["heartbeat", "pending", "ping", "processing", "progress", "queue", "running", "status"];

impl Meaning {
    /// Returns the meaning of JSON that is no part of an answer.
    ///
    /// It is a failure (an error, a word or an HTTP status for one, or `success: false`, as of Cloudflare), a report of
    /// progress, a message that could be either, or unknown.
    ///
    /// A list or a text is never a report of progress.
    #[must_use]
    pub fn from_json(value: &Value) -> Self {
        let Some(report) = Report::find(value).map(Box::new) else { return Self::Unknown };
        let Some(fields) = value.as_object() else { return Self::Failure(report) };
        let kinds =
            KIND_FIELDS.map(|key| letters(fields.get(key).and_then(Value::as_str).unwrap_or_default()));
        let names = |table: &[&str]| table.iter().any(|part| kinds.iter().any(|kind| kind.contains(part)));
        let holds = |key: &str| fields.get(key).is_some_and(|value| is_something(&value));
        let unsuccessful = fields.get("success") == Some(&Value::Bool(false));
        if holds("error")
            || holds("errors")
            || unsuccessful
            || FAILURE_WORDS.iter().any(|words| names(words))
            || status(fields).is_some()
        {
            Self::Failure(report)
        } else if names(&PROGRESS_WORDS) {
            Self::Status(report)
        } else if holds("detail") {
            // FastAPI reports errors under `detail`.
            Self::Failure(report)
        } else {
            Self::Message(report)
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

    #[derive(Debug, PartialEq)]
    enum Kind {
        Failure,
        Progress,
        Unmarked,
    }

    #[test]
    fn message_failure_and_progress_are_distinguished() {
        use Kind::{Failure, Progress, Unmarked};

        let cases = [
            // A failure.
            (json!({"error": "m"}), Failure),
            (json!({"errors": [{"message": "m"}]}), Failure),
            (json!({"detail": "m"}), Failure),
            (json!({"type": "server_error", "message": "m"}), Failure),
            (json!({"object": "error", "message": "m"}), Failure),
            (json!({"status": "failed", "message": "m"}), Failure),
            (json!({"code": "Throttling", "message": "m"}), Failure),
            (json!({"code": "RATE_LIMIT", "message": "m"}), Failure),
            (json!({"code": "insufficient_quota", "message": "m"}), Failure),
            (json!({"code": "ModelNotFound", "message": "m"}), Failure),
            (json!({"status": "ABORTED", "message": "m"}), Failure),
            (json!({"type": "ValidationException", "message": "m"}), Failure),
            (json!({"type": "content_policy_violation", "message": "m"}), Failure),
            (json!({"code": 400, "message": "m"}), Failure),
            (json!({"code": "599", "message": "m"}), Failure),
            (json!({"status": 429, "message": "m"}), Failure),
            (json!({"success": false, "message": "insufficient balance"}), Failure),
            // Also beside words for progress.
            (json!({"type": "status", "code": 503, "message": "m"}), Failure),
            (json!({"type": "progress", "error": "m"}), Failure),
            (json!({"type": "status", "success": false, "message": "m"}), Failure),
            (json!({"status": "queue_exceeded", "message": "m"}), Failure),
            // Progress.
            (json!({"type": "status", "message": "m"}), Progress),
            (json!({"type": "status", "detail": "m"}), Progress),
            (json!({"type": "ping", "msg": "m", "code": 0}), Progress),
            (json!({"object": "progress", "message": "m", "code": 200, "status": "running"}), Progress),
            (json!({"status": "QUEUED", "message": "m"}), Progress),
            (json!({"type": "queue", "error": null, "success": true, "message": "m"}), Progress),
            // Neither.
            (json!({"message": "m"}), Unmarked),
            (json!({"code": "OK", "message": "still working"}), Unmarked),
            // No known server sends these words.
            (json!({"code": "blocked", "message": "m"}), Unmarked),
            (json!({"status": "forbidden", "message": "m"}), Unmarked),
            (json!({"code": 20000, "message": "ok"}), Unmarked),
            (json!({"code": "1302", "message": "m"}), Unmarked),
            (json!({"code": 399, "status": 600, "message": "m"}), Unmarked),
            (json!({"success": true, "message": "m"}), Unmarked),
        ];
        for (message, expected) in cases {
            let kind = match Meaning::from_json(&message) {
                Meaning::Failure(_) => Failure,
                Meaning::Status(_) => Progress,
                Meaning::Message(_) => Unmarked,
                other => panic!("{message}: {other:?}"),
            };
            assert_eq!(kind, expected, "{message}");
        }
    }
}
