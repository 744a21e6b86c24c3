//! `Content`: the content of a client's message, which becomes a message of the user.

use advisor_core::{Message, Part, ToolCall, ToolResult};
use serde::Deserialize;
use serde_json::Value;

use super::parts::read_part;
use crate::refusal::Refusal;

/// A message of a client's list, of any protocol.
#[derive(Debug)]
pub(in crate::routes) enum SentMessage {
    User(Content),
    /// A part of an answer, which the server has in its own memory.
    Answer(SentAnswer),
    Result(SentResult),
    Instructions,
}

/// A part of an answer, as a client has kept it.
#[derive(Debug, Default)]
pub(in crate::routes) struct SentAnswer {
    pub(in crate::routes) text: String,
    /// The ids of its calls.
    pub(in crate::routes) calls: Vec<String>,
    /// Whether it is a message of the assistant, and no other item.
    pub(in crate::routes) is_message: bool,
}

/// A result of a call that the client has run.
#[derive(Debug)]
pub(in crate::routes) struct SentResult {
    pub(in crate::routes) call_id: String,
    pub(in crate::routes) content: Content,
    pub(in crate::routes) is_error: bool,
}

impl SentMessage {
    /// Creates an item of an answer that is no message, with the id of its call.
    pub(in crate::routes) fn item(call: Option<String>) -> Self {
        Self::Answer(SentAnswer { calls: call.into_iter().collect(), ..SentAnswer::default() })
    }

    pub(in crate::routes) fn is_result(&self) -> bool {
        matches!(self, Self::Result(_))
    }

    /// Checks whether it is an answer without calls, as one that greets the user.
    pub(in crate::routes) fn may_greet(&self) -> bool {
        matches!(self, Self::Answer(answer) if answer.is_message && answer.calls.is_empty())
    }
}

impl SentAnswer {
    /// Creates a message of the assistant. Its calls are in a field of their own, or among the parts of its content.
    pub(in crate::routes) fn message(content: &Content, calls: &Value) -> Self {
        let id = |call: &Value| call.get("id").and_then(Value::as_str).map(str::to_owned);
        let is_call = |part: &&Value| {
            part.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("tool_use"))
        };
        let in_parts = content.as_parts().iter().filter(is_call).filter_map(id);
        let calls = calls.as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            text: content.text(),
            calls: calls.iter().filter_map(id).chain(in_parts).collect(),
            is_message: true,
        }
    }
}

impl SentResult {
    /// Creates a result, whose content may also be other JSON than a text or parts.
    pub(in crate::routes) fn new(call_id: String, content: Value) -> Self {
        let content = match content {
            json @ (Value::Object(_) | Value::Number(_) | Value::Bool(_)) => Content::Text(json.to_string()),
            content => content.into(),
        };
        Self { call_id, content, is_error: false }
    }

    pub(super) fn read(self, call: &ToolCall) -> Result<Message, Refusal> {
        if matches!(self.content, Content::Nothing) {
            return Err(Refusal::bad_request("a result has no content"));
        }
        let mut result = ToolResult::new(call, self.content.parts()?);
        result.is_error = self.is_error;
        Ok(Message::tool(result))
    }
}

/// The content of a message: a text, or parts in the forms of the protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged, expecting = "it is a text, or a list of parts")]
pub(in crate::routes) enum Content {
    Text(String),
    Parts(Vec<Value>),
    #[default]
    Nothing,
}

impl From<Value> for Content {
    /// JSON of another form has no place in a message of the user.
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Array(parts) => Self::Parts(parts),
            _ => Self::Nothing,
        }
    }
}

impl Content {
    /// Reads the content of a message of the user. Texts beside one another become one.
    ///
    /// # Errors
    /// For a part that cannot be passed on to the model, with its type.
    pub(in crate::routes) fn read(&self) -> Result<Message, Refusal> {
        self.parts().map(Message::user_parts)
    }

    /// Returns the text, without parts of other kinds.
    fn text(&self) -> String {
        let text = |part: &Value| match part.get("type").and_then(Value::as_str) {
            None | Some("text" | "output_text") => part.get("text")?.as_str().map(str::to_owned),
            _ => None,
        };
        match self {
            Self::Text(text) => text.clone(),
            _ => self.as_parts().iter().filter_map(text).collect(),
        }
    }

    fn as_parts(&self) -> &[Value] {
        match self {
            Self::Parts(parts) => parts,
            _ => &[],
        }
    }

    fn parts(&self) -> Result<Vec<Part>, Refusal> {
        let sent = match self {
            Self::Text(text) => return Ok(vec![text.as_str().into()]),
            Self::Nothing => &[],
            Self::Parts(parts) => parts.as_slice(),
        };
        let (mut parts, mut text) = (Vec::new(), String::new());
        for part in sent.iter().map(read_part) {
            match part? {
                Some(Part::Text(piece)) => text.push_str(&piece),
                Some(media) => {
                    parts.extend(take(&mut text));
                    parts.push(media);
                }
                None => {}
            }
        }
        parts.extend(take(&mut text));
        Ok(parts)
    }
}

/// Takes a text as a part, unless it is empty.
fn take(text: &mut String) -> Option<Part> {
    Some(std::mem::take(text)).filter(|text| !text.is_empty()).map(Part::from)
}
