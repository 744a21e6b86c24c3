//! `ShownCall`: a call as a client shows it beside a decision, compared with the call that waits.

use advisor_core::{DecisionProblem, Error, ErrorKind, ToolCall};
use serde_json::Value;

/// A call as a client shows it beside the answer of a person. The person has approved this and nothing else.
#[derive(Debug, Clone, Default)]
pub(in crate::routes) struct ShownCall {
    pub(in crate::routes) tool: Option<String>,
    pub(in crate::routes) arguments: Option<Value>,
}

impl ShownCall {
    /// Creates a call of which a client has sent these parts. `null` and other JSON than a name count as absent.
    pub(in crate::routes) fn new(tool: Option<&str>, arguments: Option<&Value>) -> Self {
        let arguments = arguments.filter(|arguments| !arguments.is_null());
        Self { tool: tool.map(str::to_owned), arguments: arguments.cloned() }
    }

    /// Checks that it is the call that waits.
    ///
    /// # Errors
    /// If its tool or its arguments differ: the person has seen, or changed, something else.
    pub(super) fn check(&self, call: &ToolCall) -> Result<(), Error> {
        let is_tool = self.tool.as_ref().is_none_or(|tool| *tool == call.name.as_str());
        let are_arguments = |shown: &Value| is_same(shown, &read(&call.arguments));
        if is_tool && self.arguments.as_ref().is_none_or(are_arguments) {
            return Ok(());
        }
        let message =
            format!("an answer shows another tool or other arguments than the call of `{}`", call.name);
        Err(Error::new(ErrorKind::Approval { problem: DecisionProblem::OtherCall }, message))
    }
}

/// Returns arguments as clients get them.
pub(in crate::routes) fn read(arguments: &str) -> Value {
    if ToolCall::gives_none(arguments) {
        return Value::Object(serde_json::Map::new());
    }
    let text = arguments.trim();
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Compares JSON as a client in JavaScript keeps it: its numbers are doubles.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_in_other = |(name, value)| other.get(name).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(is_in_other)
        }
        (one, other) => one == other,
    }
}
