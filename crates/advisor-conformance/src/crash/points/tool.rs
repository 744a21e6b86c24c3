//! `PointTool`: a tool with await points at its start and at its end.

use std::fmt;
use std::sync::Arc;

use advisor_core::{Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput};
use async_trait::async_trait;

use crate::crash::points::pass::WANTED;
use crate::crash::{AwaitPoint, AwaitPoints, Event};

/// A tool that passes a point when it starts and when it has run. Made by [`AwaitPoints::tool`].
#[derive(Clone)]
pub struct PointTool {
    points: AwaitPoints,
    inner: Arc<dyn Tool>,
}

impl PointTool {
    pub(in crate::crash) fn new(points: &AwaitPoints, inner: Arc<dyn Tool>) -> Self {
        Self { points: points.clone(), inner }
    }

    async fn pass(&self, await_point: AwaitPoint) -> Result<(), ToolError> {
        match self.points.at(await_point).await {
            None => Ok(()),
            Some(_) => Err(ToolError::new(WANTED)),
        }
    }
}

#[async_trait]
impl Tool for PointTool {
    fn definition(&self) -> &ToolDefinition {
        self.inner.definition()
    }

    async fn run(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let _alive = self.points.alive();
        let key = invocation.key.clone();
        self.points.record(Event::ToolStarted {
            key: key.clone(),
            call_id: invocation.call.id.clone(),
            effect: self.inner.definition().effect,
        });
        self.pass(AwaitPoint::ToolStarted).await?;
        let output = self.inner.run(invocation).await;
        self.points.record(Event::ToolEffect(key));
        self.pass(AwaitPoint::ToolEnding).await?;
        output
    }
}

impl fmt::Debug for PointTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointTool").field("definition", self.inner.definition()).finish_non_exhaustive()
    }
}
