//! What servers say when they fail: an error under many shapes.

use serde_json::{Map, Value};

/// The keys under which an error stands.
const STANDS_UNDER: [&str; 3] = ["error", "errors", "detail"];
/// What a server said about a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ErrorObject {
    /// The server's words.
    pub(crate) message: String,
    /// `code`, where it is a word.
    pub(crate) code: Option<String>,
    /// `type`, or Google's `status`.
    pub(crate) kind: Option<String>,
    /// An HTTP status that the object names, as `code`, `status` or `status_code`.
    pub(crate) status: Option<u16>,
    /// What the model had written when the server refused it (Q46).
    pub(crate) failed_generation: Option<String>,
}

impl ErrorObject {
    /// Reads what stands under `error`: a text, an object or a list of them (Q45).
    pub(crate) fn read(error: &Value) -> Self {
        match error {
            Value::String(text) => Self { message: text.clone(), ..Self::default() },
            Value::Array(errors) => errors.first().map(Self::read).unwrap_or_default(),
            Value::Object(fields) => match fields.get("error") {
                Some(inner) if !inner.is_null() => Self::read(inner),
                _ => Self::from_fields(fields),
            },
            other => Self { message: other.to_string(), ..Self::default() },
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
        let word = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        let message = ["message", "msg", "detail", "error_message"]
            .iter()
            .find_map(|key| fields.get(*key).filter(is_something))
            .map(as_text)
            .unwrap_or_default();
        let raw = fields.get("metadata").and_then(|metadata| metadata.get("raw")).map(as_text);
        Self {
            message: match raw {
                // OpenRouter's own words are general; what the server behind it said is in here.
                Some(raw) if raw != message => format!("{message}: {raw}"),
                _ => message,
            },
            code: word("code"),
            kind: word("type").or_else(|| word("status")),
            status: status(fields),
            failed_generation: word("failed_generation"),
        }
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The first field that holds an HTTP status of a failure.
pub(super) fn status(fields: &Map<String, Value>) -> Option<u16> {
    ["code", "status_code", "status"]
        .iter()
        .filter_map(|key| fields.get(*key).and_then(number))
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
