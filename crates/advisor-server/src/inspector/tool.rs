//! `InspectedTool`: a tool whose runs are recorded.

use std::sync::Arc;

use advisor_core::{Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, async_trait};
use serde_json::json;

use super::journal::TurnJournal;

/// A tool whose runs are recorded.
pub(super) struct InspectedTool(pub(super) Arc<dyn Tool>);

#[async_trait]
impl Tool for InspectedTool {
    fn definition(&self) -> &ToolDefinition {
        self.0.definition()
    }

    async fn run(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let Some(journal) = TurnJournal::from_turn(&invocation.turn) else {
            return self.0.run(invocation).await;
        };
        let (id, name) = (invocation.call.id.clone(), invocation.call.name.clone());
        journal.record(format!("tool.start {id}"), json!({"name": name}));
        let output = self.0.run(invocation).await;
        journal.record(format!("tool.end {id}"), json!({"name": name, "is_error": output.is_err()}));
        output
    }
}
