//! A server's report of a failure, in the many forms in which servers write it.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::json::value;
use crate::redaction::ServerWords;

/// The keys that hold an error.
const ERROR_KEYS: [&str; 3] = ["error", "errors", "detail"];

/// A server's report of a failure, as it was read from JSON. It may quote secrets; nothing shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The server's message.
    pub message: ServerWords,
    /// `code`, if it is a string.
    pub code: Option<ServerWords>,
    /// `type`, or Google's `status`.
    pub kind: Option<ServerWords>,
    /// The invalid field of the request.
    pub param: Option<ServerWords>,
    /// An HTTP status that the object names, as `code`, `status` or `status_code`.
    pub status: Option<u16>,
    /// The delay before the next request, as Google reports it in `details`.
    pub retry_after: Option<Duration>,
    /// The text that the model had written when the server refused it (Q46).
    pub failed_generation: Option<ServerWords>,
    /// The server's id of the request, as Anthropic reports it beside the error.
    pub request_id: Option<ServerWords>,
}

impl Report {
    /// Reads the value of `error`: a text, an object or a list of them (Q45).
    pub fn read(error: &Value) -> Self {
        match error {
            Value::String(text) => Self { message: text.as_str().into(), ..Self::default() },
            Value::Array(errors) => errors.first().map(Self::read).unwrap_or_default(),
            Value::Object(fields) => match fields.get("error") {
                Some(inner) if !inner.is_null() => Self::read(inner),
                _ => Self::from_fields(fields),
            },
            other => Self { message: other.to_string().into(), ..Self::default() },
        }
    }

    /// Reads a whole body or event, whose top level may be the error; `None` if it holds none.
    pub fn find(body: &Value) -> Option<Self> {
        match body {
            Value::Array(items) => items.iter().find_map(Self::find),
            Value::Object(fields) => {
                if let Some(error) = ERROR_KEYS.iter().find_map(|key| fields.get(*key).filter(is_something)) {
                    let inner = Self::read(error);
                    let (status, request_id) = (status(fields), word(fields, "request_id"));
                    return Some(Self {
                        status: inner.status.or(status),
                        request_id: inner.request_id.clone().or(request_id),
                        ..inner
                    });
                }
                let has_message = fields.contains_key("message") || fields.contains_key("msg");
                (has_message && !fields.contains_key("choices")).then(|| Self::from_fields(fields))
            }
            _ => None,
        }
    }

    /// Reads the body of a response; `None` if it holds no error.
    pub(crate) fn in_body(body: &str) -> Option<Self> {
        Self::find(&value(body).ok()?)
    }

    fn from_fields(fields: &Map<String, Value>) -> Self {
        let word = |key: &str| word(fields, key);
        let message = ["message", "msg", "detail", "error_message"]
            .iter()
            .find_map(|key| fields.get(*key).filter(is_something))
            .map(|message| ServerWords::from(as_text(message)))
            .unwrap_or_default();
        let raw = fields.get("metadata").and_then(|metadata| metadata.get("raw"));
        let raw = raw.map(|raw| ServerWords::from(as_text(raw)));
        Self {
            message: match raw {
                // OpenRouter's own message is general; `raw` has the message of the server behind it.
                Some(raw) if raw != message => message.followed_by(": ", &raw),
                _ => message,
            },
            code: word("code"),
            // That it is an error says nothing.
            kind: word("type").filter(|kind| !kind.are("error")).or_else(|| word("status")),
            param: word("param"),
            status: status(fields),
            retry_after: fields.get("details").and_then(retry_delay),
            failed_generation: word("failed_generation"),
            request_id: word("request_id"),
        }
    }
}

fn word(fields: &Map<String, Value>, key: &str) -> Option<ServerWords> {
    fields.get(key).and_then(Value::as_str).map(ServerWords::from)
}

/// Returns the first HTTP status of a failure in the fields.
pub(crate) fn status(fields: &Map<String, Value>) -> Option<u16> {
    ["code", "status_code", "status"]
        .iter()
        .filter_map(|key| whole_number(fields.get(*key)?))
        .find(|status| (400..600).contains(status))
}

/// Returns a status that is written as a number or a text.
fn whole_number(value: &Value) -> Option<u16> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as u16),
    }
}

/// Returns Google's `retryDelay`, such as `37s`.
fn retry_delay(details: &Value) -> Option<Duration> {
    let delay = details.as_array()?.iter().find_map(|detail| detail.get("retryDelay"))?;
    Duration::try_from_secs_f64(delay.as_str()?.strip_suffix('s')?.parse().ok()?).ok()
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // FastAPI sends a list of messages about invalid fields.
        Value::Array(items) => items
            .iter()
            .map(|item| item.get("msg").map_or_else(|| as_text(item), as_text))
            .collect::<Vec<_>>()
            .join("; "),
        other => other.to_string(),
    }
}

pub(crate) fn is_something(value: &&Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_u64() != Some(0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_are_read_in_every_shape() {
        let error = |message: &str| Report { message: message.into(), ..Report::default() };
        let word = |word: &str| Some(word.into());
        let cases = [
            (json!({"error": "plain"}), Some(error("plain"))),
            (
                json!({"error": {"message": "m", "type": "t", "code": "c", "param": null}}),
                Some(Report { kind: word("t"), code: word("c"), ..error("m") }),
            ),
            (
                json!({"error": {"message": "m", "param": "messages[3].content"}}),
                Some(Report { param: word("messages[3].content"), ..error("m") }),
            ),
            (
                json!({"error": {"message": "m", "code": 502, "metadata": {"raw": "upstream"}}}),
                Some(Report { status: Some(502), ..error("m: upstream") }),
            ),
            (json!([{"error": {"message": "m", "code": 400, "status": "INVALID_ARGUMENT"}}]), {
                Some(Report { status: Some(400), kind: word("INVALID_ARGUMENT"), ..error("m") })
            }),
            (json!({"error": [{"message": "m"}]}), Some(error("m"))),
            (json!({"errors": [{"message": "m", "code": 7003}], "success": false}), Some(error("m"))),
            (
                json!({"object": "error", "message": "m", "type": "BadRequestError", "code": 400}),
                Some(Report { status: Some(400), kind: word("BadRequestError"), ..error("m") }),
            ),
            (json!({"detail": "Not Found"}), Some(error("Not Found"))),
            (
                json!({"detail": [{"loc": ["body", "x"], "msg": "Field required", "type": "missing"}]}),
                Some(Report { kind: word("missing"), ..error("Field required") }),
            ),
            (
                json!({"code": "Throttling", "message": "slow"}),
                Some(Report { code: word("Throttling"), ..error("slow") }),
            ),
            (
                json!({"error": {"message": "m", "code": "tool_use_failed", "failed_generation": "<x>", "status_code": 400}}),
                Some(Report {
                    code: word("tool_use_failed"),
                    status: Some(400),
                    failed_generation: word("<x>"),
                    ..error("m")
                }),
            ),
            (
                json!({"error": {"message": "m", "details": [{"@type": "Help"}, {"retryDelay": "37.5s"}]}}),
                Some(Report { retry_after: Some(Duration::from_millis(37_500)), ..error("m") }),
            ),
            (json!({"error": {"message": "m", "details": [{"retryDelay": "-1s"}]}}), Some(error("m"))),
            (
                json!({"type": "error", "error": {"message": "m"}, "request_id": "req_1"}),
                Some(Report { request_id: word("req_1"), ..error("m") }),
            ),
            (json!({"error": null, "choices": []}), None),
            (json!({"choices": [], "message": "not an error"}), None),
            (json!({"object": "list"}), None),
            (json!("text"), None),
        ];
        for (body, expected) in cases {
            assert_eq!(Report::find(&body), expected, "{body}");
        }
    }
}
