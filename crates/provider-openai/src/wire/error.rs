//! What servers say when they fail: an error under many shapes.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::loose::Number;
use provider_http::redaction::ServerWords;

/// The keys under which an error stands.
const STANDS_UNDER: [&str; 3] = ["error", "errors", "detail"];
/// What a server said about a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ErrorObject {
    /// The server's words.
    pub(crate) message: ServerWords,
    /// `code`, where it is a word.
    pub(crate) code: Option<ServerWords>,
    /// `type`, or Google's `status`.
    pub(crate) kind: Option<ServerWords>,
    /// The field of the request that is wrong.
    pub(crate) param: Option<ServerWords>,
    /// An HTTP status that the object names, as `code`, `status` or `status_code`.
    pub(crate) status: Option<u16>,
    /// What the model had written when the server refused it (Q46).
    pub(crate) failed_generation: Option<ServerWords>,
}

impl ErrorObject {
    /// Reads what stands under `error`: a text, an object or a list of them (Q45).
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

    /// Reads a whole body or event, in which the error may stand at the top; `None` if it is none.
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
                // OpenRouter's own words are general; what the server behind it said is in here.
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

/// The first field that holds an HTTP status of a failure.
pub(super) fn status(fields: &Map<String, Value>) -> Option<u16> {
    ["code", "status_code", "status"]
        .iter()
        .filter_map(|key| Number::deserialize(fields.get(*key)?).ok()?.count())
        .find_map(|status| u16::try_from(status).ok().filter(|status| (400..600).contains(status)))
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // FastAPI: a list of what is wrong where.
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
