//! `CallIdentity`: id and name of a call without its arguments; makes error results.

use advisor_core::{Text, ToolCall, ToolResult};

/// The fields of a call that its result repeats. Without the arguments, a copy is cheap.
#[derive(Clone)]
pub(crate) struct CallIdentity {
    pub(crate) id: Text,
    pub(crate) name: Text,
}

impl CallIdentity {
    pub(crate) fn from_call(call: &ToolCall) -> Self {
        Self { id: call.id.clone(), name: call.name.clone() }
    }

    /// Returns an error result with the reason for the model.
    pub(crate) fn error(&self, text: impl Into<Text>) -> ToolResult {
        ToolResult::error(&ToolCall::new(self.id.clone(), self.name.clone(), String::new()), text)
    }
}
