use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Part, Text};

/// What the model asks a tool to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The provider's id; a stable one made here where the provider sends none, or one that an earlier call of the answer
    /// has. Never empty, and no other call of the answer has it.
    pub id: Text,
    /// The tool. Never empty: a call that never got a name is called [`ToolCall::UNNAMED`].
    pub name: Text,
    /// The arguments exactly as the model wrote them; they may be cut off or no JSON at all.
    pub arguments: String,
    /// Whether the provider finished the call, and its name and arguments are certain to be its own. A call that is not
    /// complete never runs.
    #[serde(default = "complete", skip_serializing_if = "Clone::clone")]
    pub complete: bool,
}

fn complete() -> bool {
    true
}

impl ToolCall {
    /// The name of a call that came without one, so that it is answered with an error and not lost.
    pub const UNNAMED: &'static str = "unnamed_tool";

    /// A finished call.
    pub fn new(id: impl Into<Text>, name: impl Into<Text>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), complete: true }
    }

    /// The arguments as JSON; nothing but white space counts as `{}`.
    ///
    /// # Errors
    /// The parser's complaint, if they are anything else that is no JSON. They are never replaced.
    pub fn parsed_arguments(&self) -> Result<Value, serde_json::Error> {
        if self.arguments.trim().is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        serde_json::from_str(&self.arguments)
    }
}

/// The one answer to a [`ToolCall`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: Text,
    /// The tool.
    pub name: Text,
    /// What the model is told.
    pub parts: Vec<Part>,
    /// Whether the call failed, was denied or never ran.
    #[serde(default)]
    pub is_error: bool,
}

impl ToolResult {
    /// A result of `call`.
    pub fn new(call: &ToolCall, parts: Vec<Part>) -> Self {
        Self { call_id: call.id.clone(), name: call.name.clone(), parts, is_error: false }
    }

    /// A result that tells the model why `call` did not succeed.
    pub fn error(call: &ToolCall, text: impl Into<Text>) -> Self {
        Self { is_error: true, ..Self::new(call, vec![Part::Text(text.into())]) }
    }

    /// The text parts, one right after the other; structured parts as JSON. Who writes several writes what separates them.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Json(value) => text.push_str(&value.to_string()),
                _ => {}
            }
        }
        text
    }
}
