//! `ClientSideTool`: a tool that only the caller can run.

use advisor_core::{Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, async_trait};

/// A tool that only the caller can run: its calls are client-side.
///
/// The turn ends with them ([`ChatResponse::open_calls`](advisor_core::ChatResponse::open_calls)), and the results are
/// part of the next turn's input. The loop runs the other calls of the same answer.
#[derive(Debug, Clone)]
pub struct ClientSideTool(ToolDefinition);

impl ClientSideTool {
    /// Creates a client-side tool with this definition.
    #[must_use]
    pub fn new(definition: ToolDefinition) -> Self {
        Self(definition.client_side())
    }
}

#[async_trait]
impl Tool for ClientSideTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    async fn run(&self, _invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        Err(ToolError::new("not started: only the caller can run this tool"))
    }
}
