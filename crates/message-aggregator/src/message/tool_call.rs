//! `ToolCall` and `ToolResult`; `parsed_arguments` parses arguments and never replaces them.

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::{MOST_VALUES, values};
use crate::{Part, Text};

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The provider's id. If that is missing when the block opens, or equals the id of an earlier call of the
    /// answer, a stable one is generated here. Never empty, and unique in the answer.
    pub id: Text,
    /// The name of the tool. Never empty: [`ToolCall::UNNAMED`] if the call never got a name.
    pub name: Text,
    /// The arguments exactly as the model wrote them; they may be cut off or invalid JSON.
    pub arguments: String,
    /// Whether the provider finished the call, and its name and arguments certainly belong to it. An incomplete
    /// call never runs. A complete one runs unless the finish reason of its answer
    /// [vetoes](crate::FinishReason::vetoes_calls) it. For example, a call that the provider ended before it failed is
    /// complete in the partial answer. The reason of that answer is
    /// [`Interrupted`](crate::FinishReason::Interrupted).
    #[serde(default = "complete", skip_serializing_if = "Clone::clone")]
    pub complete: bool,
}

fn complete() -> bool {
    true
}

impl ToolCall {
    /// The name of a call that arrived without one, so that it is answered with an error and not lost.
    pub const UNNAMED: &'static str = "unnamed_tool";

    /// Creates a complete call.
    pub fn new(id: impl Into<Text>, name: impl Into<Text>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), complete: true }
    }

    /// Checks whether a text of arguments gives none: white space only, or `null`.
    #[must_use]
    pub fn gives_none(arguments: &str) -> bool {
        matches!(arguments.trim(), "" | "null")
    }

    /// Returns the arguments as JSON. None ([`gives_none`](Self::gives_none)) are `{}`.
    ///
    /// # Errors
    /// That of the parser if they are not JSON, or have more than [`MOST_VALUES`]. They are never replaced.
    pub fn parsed_arguments(&self) -> Result<Value, serde_json::Error> {
        if Self::gives_none(&self.arguments) {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        // A shorter text has no room for more.
        if self.arguments.len() > MOST_VALUES && values(self.arguments.as_bytes()) > MOST_VALUES {
            return Err(serde_json::Error::custom(format!("they have more than {MOST_VALUES} values")));
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
    /// The name of the tool.
    pub name: Text,
    /// The content for the model.
    pub parts: Vec<Part>,
    /// Whether the call failed, was denied or never ran.
    #[serde(default)]
    pub is_error: bool,
    /// Whether the call was denied: a policy, the application or a person did not let it run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_denied: bool,
}

impl ToolResult {
    /// Creates a result of `call`.
    pub fn new(call: &ToolCall, parts: Vec<Part>) -> Self {
        Self { call_id: call.id.clone(), name: call.name.clone(), parts, is_error: false, is_denied: false }
    }

    /// Creates an error result that explains the failure of `call` to the model.
    pub fn error(call: &ToolCall, text: impl Into<Text>) -> Self {
        Self { is_error: true, ..Self::new(call, vec![Part::Text(text.into())]) }
    }

    /// Creates an error result that explains to the model why `call` was denied.
    pub fn denied(call: &ToolCall, text: impl Into<Text>) -> Self {
        Self { is_denied: true, ..Self::error(call, text) }
    }

    /// Returns the text parts, concatenated without separators; structured parts as JSON.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_and_nothing_are_no_arguments() {
        let parsed = |text: &str| ToolCall::new("c", "f", text).parsed_arguments().ok();
        for none in ["", " \n", "null", " null "] {
            assert_eq!(parsed(none), Some(json!({})), "{none:?}");
        }
        assert_eq!(parsed("{\"a\":null}"), Some(json!({"a": null})));
        assert_eq!(parsed("nul"), None);
        assert_eq!(parsed("\"null\""), Some(json!("null")));
    }

    #[test]
    fn law_r1_arguments_of_many_values_are_not_parsed() {
        let arguments = |objects: usize| format!("[{}]", vec!["{}"; objects].join(","));
        let parsed = |text: String| ToolCall::new("c", "f", text).parsed_arguments();
        assert!(parsed(arguments(1 << 16)).is_ok());
        let refused = parsed(arguments(1 << 17)).unwrap_err().to_string();
        assert!(refused.contains("more than 131072 values"), "{refused}");
        let text = json!({"text": "{},".repeat(1 << 17)}).to_string();
        assert!(parsed(text).is_ok(), "a long text is one value");
    }
}
