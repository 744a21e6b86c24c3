use advisor_core::{Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, async_trait};

/// A tool that only the caller can run: the model may call it, and the loop returns its calls to the caller.
///
/// If an answer has one such call, all its calls go to the caller: the turn ends, and the results are part of the
/// next turn's input.
#[derive(Debug, Clone)]
pub struct ClientTool(ToolDefinition);

impl ClientTool {
    /// Creates a client-side tool with this definition.
    #[must_use]
    pub fn new(definition: ToolDefinition) -> Self {
        Self(definition.client_side())
    }
}

#[async_trait]
impl Tool for ClientTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    async fn run(&self, _invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        Err(ToolError::new("not started: only the caller can run this tool"))
    }
}
