//! `ToolSet::prefixed`: the tools of a set under longer names.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, ToolSet};

/// A tool under another name.
struct Prefixed {
    definition: ToolDefinition,
    tool: Arc<dyn Tool>,
}

#[async_trait]
impl Tool for Prefixed {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn run(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        self.tool.run(invocation).await
    }
}

impl ToolSet {
    /// Returns the tools with `prefix` before their names, so that sets from several sources have no equal names.
    ///
    /// # Example
    /// ```
    /// use advisor_core::ToolSet;
    /// # use advisor_core::{Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, async_trait};
    /// # struct Find(ToolDefinition);
    /// # #[async_trait]
    /// # impl Tool for Find {
    /// #     fn definition(&self) -> &ToolDefinition { &self.0 }
    /// #     async fn run(&self, _: ToolInvocation) -> Result<ToolOutput, ToolError> { Ok("found".into()) }
    /// # }
    /// # let find = || Find(ToolDefinition::new("find", "Finds.", serde_json::json!({"type": "object"})));
    ///
    /// let (orders, articles) = (ToolSet::new().with(find()), ToolSet::new().with(find()));
    /// let both = orders.prefixed("orders_").merged(&articles.prefixed("articles_"))?;
    /// assert!(both.find("orders_find").is_some() && both.find("articles_find").is_some());
    /// # Ok::<(), advisor_core::Error>(())
    /// ```
    #[must_use]
    pub fn prefixed(&self, prefix: &str) -> Self {
        let renamed = |tool: &Arc<dyn Tool>| -> Arc<dyn Tool> {
            let mut definition = tool.definition().clone();
            definition.name = format!("{prefix}{}", definition.name).into();
            Arc::new(Prefixed { definition, tool: Arc::clone(tool) })
        };
        self.iter().map(renamed).collect()
    }
}
