//! `ToolExecution`, `ToolBatch` and `ReadyCall`: the replaceable interface that runs calls.

pub(crate) mod parallel;
pub(crate) mod run_call;
pub(crate) mod tool_events;

use std::fmt;
use std::sync::Arc;

use advisor_core::{
    BlockId, CallKey, ChatRequest, ConversationKey, Result, Text, Tool, ToolCall, ToolResult, Turn,
    async_trait,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::ToolEvents;

/// Runs the calls of one answer. Replace it to run tools elsewhere, such as in a durable engine.
///
/// # Ordering
/// The loop calls it after all advisors inside the loop have completed for the answer and the answer is recorded.
/// The starts of calls that must not run twice ([`Effect::AtMostOnce`](advisor_core::Effect)) are recorded, too;
/// it must run these once. It receives only calls that may run. The loop itself answers calls of unknown tools and
/// with bad arguments, and does not call it if no call is left. The results must be one per call, in call order.
/// They are recorded before the model is asked again.
///
/// It reports progress to [`ToolBatch::events`]. The loop adds the start and the end of a call that it does not
/// report.
///
/// # Cancellation
/// The future is dropped with the turn.
///
/// # Errors
/// An error means that the execution itself failed, and ends the turn. A failing tool is an error result.
///
/// # Example
/// ```
/// use advisor_core::{Result, ToolResult, async_trait};
/// use tool_call_advisor::{ToolBatch, ToolExecution};
///
/// /// Answers every call without running anything.
/// struct DryRun;
///
/// #[async_trait]
/// impl ToolExecution for DryRun {
///     async fn execute(&self, batch: ToolBatch) -> Result<Vec<ToolResult>> {
///         Ok(batch.calls.iter().map(|call| ToolResult::error(&call.call, "dry run: not executed")).collect())
///     }
/// }
/// ```
#[async_trait]
pub trait ToolExecution: Send + Sync + 'static {
    /// Runs the calls and returns one result per call, in call order.
    async fn execute(&self, batch: ToolBatch) -> Result<Vec<ToolResult>>;
}

/// The calls of one answer to run.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolBatch {
    /// The calls, in the order of the answer.
    pub calls: Vec<ReadyCall>,
    /// The turn.
    pub turn: Arc<Turn>,
    /// The conversation that the turn belongs to, if any.
    pub conversation: Option<ConversationKey>,
    /// Receives the events of the calls.
    pub events: ToolEvents,
    /// The deadline of the turn, if its time is limited.
    pub deadline: Option<Instant>,
}

/// A call that may run: its tool is known and its arguments fit.
#[derive(Clone)]
#[non_exhaustive]
pub struct ReadyCall {
    /// The call as the model wrote it.
    pub call: ToolCall,
    /// The block of the call.
    pub block: BlockId,
    /// The stable key of the call.
    pub key: CallKey,
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// Its arguments, parsed and checked against the tool's schema.
    pub arguments: Value,
    /// The arguments as text, if a decision has changed them.
    pub(crate) edited: Option<Text>,
}

impl fmt::Debug for ReadyCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyCall")
            .field("key", &self.key)
            .field("name", &self.call.name)
            .finish_non_exhaustive()
    }
}

impl ToolBatch {
    pub(crate) fn new(
        calls: Vec<ReadyCall>,
        request: &ChatRequest,
        events: ToolEvents,
        deadline: Option<Instant>,
    ) -> Self {
        let (turn, conversation) = (Arc::clone(&request.turn), request.conversation.clone());
        Self { calls, turn, conversation, events, deadline }
    }
}
