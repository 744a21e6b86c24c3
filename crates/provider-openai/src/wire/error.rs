//! The errors that servers report, in many forms.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::loose::Number;
use provider_http::redaction::ServerWords;

/// The keys that hold an error.
const STANDS_UNDER: [&str; 3] = ["error", "errors", "detail"];
/// A server's report of a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ErrorObject {
    /// The server's message.
    pub(crate) message: ServerWords,
    /// `code`, if it is a string.
    pub(crate) code: Option<ServerWords>,
    /// `type`, or Google's `status`.
    pub(crate) kind: Option<ServerWords>,
    /// The invalid field of the request.
    pub(crate) param: Option<ServerWords>,
    /// An HTTP status that the object names, as `code`, `status` or `status_code`.
    pub(crate) status: Option<u16>,
    /// The text that the model had written when the server refused it (Q46).
    pub(crate) failed_generation: Option<ServerWords>,
}

impl ErrorObject {
    /// Reads the value of `error`: a text, an object or a list of them (Q45).
    pub(crate) fn read(error: &Value) -> Self {
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
    pub(crate) fn find(body: &Value) -> Option<Self> {
        match body {
            Value::Array(items) => items.iter().find_map(Self::find),
            Value::Object(fields) => {
                if let Some(error) = STANDS_UNDER.iter().find_map(|key| fields.get(*key).filter(is_something))
                {
                    let inner = Self::read(error);
                    return Some(Self { status: inner.status.or_else(|| status(fields)), ..inner });
                }
                let says = fields.contains_key("message") || fields.contains_key("msg");
                (says && !fields.contains_key("choices")).then(|| Self::from_fields(fields))
            }
            _ => None,
        }
    }

    fn from_fields(fields: &Map<String, Value>) -> Self {
        let word = |key: &str| fields.get(key).and_then(Value::as_str).map(ServerWords::from);
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
            kind: word("type").or_else(|| word("status")),
            param: word("param"),
            status: status(fields),
            failed_generation: word("failed_generation"),
        }
    }
}

/// Returns the first HTTP status of a failure in the fields.
pub(super) fn status(fields: &Map<String, Value>) -> Option<u16> {
    ["code", "status_code", "status"]
        .iter()
        .filter_map(|key| Number::deserialize(fields.get(*key)?).ok()?.count())
        .find_map(|status| u16::try_from(status).ok().filter(|status| (400..600).contains(status)))
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

pub(super) fn is_something(value: &&Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_u64() != Some(0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}
