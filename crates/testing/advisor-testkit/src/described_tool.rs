//! `DescribedTool`: a tool that is described to a model and does nothing.

use advisor_core::{Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, async_trait};
use serde_json::json;

/// A tool for tests of requests and answers: it is described to the model, and returns an empty text if it runs.
///
/// ```
/// use advisor_core::ToolSet;
/// use advisor_testkit::DescribedTool;
///
/// let tools = ToolSet::new().with(DescribedTool::named("weather"));
/// assert_eq!(tools.definitions().next().map(|tool| tool.name.as_str()), Some("weather"));
/// ```
#[derive(Debug, Clone)]
pub struct DescribedTool(ToolDefinition);

impl DescribedTool {
    /// Creates a tool with this definition.
    #[must_use]
    pub fn new(definition: ToolDefinition) -> Self {
        Self(definition)
    }

    /// Creates a tool with this name, whose arguments are any object.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::new(ToolDefinition::new(name, "Does it.", json!({ "type": "object" })))
    }
}

#[async_trait]
impl Tool for DescribedTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    async fn run(&self, _: ToolInvocation) -> Result<ToolOutput, ToolError> {
        Ok("".into())
    }
}
