use advisor_core::{Text, ToolCall, ToolResult};

/// What a result says of its call. Unlike the call it has no arguments, so a copy is cheap.
#[derive(Clone)]
pub(crate) struct CallIdentity {
    pub(crate) id: Text,
    pub(crate) name: Text,
}

impl CallIdentity {
    pub(crate) fn of(call: &ToolCall) -> Self {
        Self { id: call.id.clone(), name: call.name.clone() }
    }

    /// A result that tells the model why the call did not succeed.
    pub(crate) fn error(&self, text: impl Into<Text>) -> ToolResult {
        ToolResult::error(&ToolCall::new(self.id.clone(), self.name.clone(), String::new()), text)
    }
}
