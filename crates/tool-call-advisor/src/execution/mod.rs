pub(crate) mod parallel;
pub(crate) mod run_call;

use std::fmt;
use std::sync::Arc;

use advisor_core::{
    BlockId, CallKey, ChatRequest, ConversationKey, Part, Result, Text, Tool, ToolCall, ToolEvent,
    ToolEventKind, ToolResult, Turn, async_trait,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::ToolLimits;
use crate::truncate::{ResultBounds, cap_result};

/// Runs the calls of one answer. Replace it to run tools elsewhere, such as in a durable engine.
///
/// # Ordering
/// The loop calls it after all advisors inside the loop have completed for the answer and the answer is recorded.
/// The starts of calls that must not run twice ([`Effect::AtMostOnce`](advisor_core::Effect)) are recorded, too;
/// it must run these once. It receives only calls that may run. The loop itself answers calls of unknown tools and
/// with bad arguments, and does not call it if no call is left. The results must be one per call, in call order.
/// They are recorded before the model is asked again.
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

/// Sender for the events of tool calls. Cheap to clone; buffers a bounded number of events.
#[derive(Debug, Clone)]
pub struct ToolEvents(Option<Listener>);

#[derive(Debug, Clone)]
struct Listener {
    sender: mpsc::Sender<ToolEvent>,
    /// Limits for the results in events, the same as for the results that the model reads.
    bounds: ResultBounds,
}

impl ToolEvents {
    /// Creates a sender that discards events.
    #[must_use]
    pub fn ignored() -> Self {
        Self(None)
    }

    /// Creates a sender and its receiver. At most `capacity` events are buffered; beyond that, tools wait.
    #[must_use]
    pub fn channel(capacity: usize) -> (Self, mpsc::Receiver<ToolEvent>) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        (Self(Some(Listener { sender, bounds: ToolLimits::default().of_result() })), receiver)
    }

    /// Sets the limits for the results in events.
    pub(crate) fn within(mut self, bounds: ResultBounds) -> Self {
        if let Some(listener) = &mut self.0 {
            listener.bounds = bounds;
        }
        self
    }

    /// Returns whether events are sent instead of discarded.
    #[must_use]
    pub fn are_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Reports that a tool starts.
    pub async fn started(&self, call: &ReadyCall) {
        let ToolCall { id, name, arguments, .. } = &call.call;
        let kind = |_| ToolEventKind::Started { arguments: arguments.as_str().into() };
        self.send(call.block, id, name, kind).await;
    }

    /// Reports the progress of a tool.
    pub async fn progress(&self, call: &ReadyCall, part: Part) {
        self.send(call.block, &call.call.id, &call.call.name, |_| ToolEventKind::Progress(part)).await;
    }

    /// Reports the result of a tool.
    pub async fn finished(&self, call: &ReadyCall, result: &ToolResult) {
        self.ended(call.block, result).await;
    }

    /// Reports the result of a call, including one that cannot run.
    pub(crate) async fn ended(&self, block: BlockId, result: &ToolResult) {
        let kind = |bounds| ToolEventKind::Finished(cap_result(result.clone(), bounds));
        self.send(block, &result.call_id, &result.name, kind).await;
    }

    async fn send(
        &self,
        block: BlockId,
        call_id: &Text,
        name: &Text,
        kind: impl FnOnce(ResultBounds) -> ToolEventKind,
    ) {
        if let Some(Listener { sender, bounds }) = &self.0 {
            let event = ToolEvent::new(block, call_id.clone(), name.clone(), kind(*bounds));
            // The receiver lives as long as the loop. If it is gone, the tool is about to be dropped, too.
            let _ = sender.send(event).await;
        }
    }
}
