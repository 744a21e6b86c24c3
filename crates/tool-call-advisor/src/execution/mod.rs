pub(crate) mod catch_panics;
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
/// It is asked after everything inside the loop is done with the answer and the answer is recorded, and so are the
/// starts of calls that must not run twice ([`Effect::AtMostOnce`](advisor_core::Effect)): it runs these once.
/// It gets the calls that may run and no others: calls of unknown tools and with bad arguments are answered before,
/// and if none is left it is not asked.
/// The results must be one per call, in call order; they are stored before the model is asked again.
///
/// # Cancellation
/// The future is dropped with the turn.
///
/// # Errors
/// An error is one of the machinery and ends the turn. A failing tool is a result that says so.
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
    /// Runs the calls and gives one result per call, in call order.
    async fn execute(&self, batch: ToolBatch) -> Result<Vec<ToolResult>>;
}

/// The calls of one answer that are to be run.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolBatch {
    /// The calls, in the order of the answer.
    pub calls: Vec<ReadyCall>,
    /// The turn.
    pub turn: Arc<Turn>,
    /// The conversation that the turn belongs to, if it is remembered in one.
    pub conversation: Option<ConversationKey>,
    /// Where to tell what happens.
    pub events: ToolEvents,
    /// When the turn's time is over, if it is bounded.
    pub deadline: Option<Instant>,
}

/// A call that may run: its tool is known and its arguments fit.
#[derive(Clone)]
#[non_exhaustive]
pub struct ReadyCall {
    /// The call as the model wrote it.
    pub call: ToolCall,
    /// Its block.
    pub block: BlockId,
    /// Its stable name.
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

/// Where an execution tells what happens to calls. Cheap to clone; at most a few events wait to be read.
#[derive(Debug, Clone)]
pub struct ToolEvents(Option<Listener>);

#[derive(Debug, Clone)]
struct Listener {
    sender: mpsc::Sender<ToolEvent>,
    /// Who listens is shown what the model is told.
    bounds: ResultBounds,
}

impl ToolEvents {
    /// Events that nobody reads.
    #[must_use]
    pub fn ignored() -> Self {
        Self(None)
    }

    /// Events and where they are read; at most `capacity` wait for it, then the tools do.
    #[must_use]
    pub fn channel(capacity: usize) -> (Self, mpsc::Receiver<ToolEvent>) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        (Self(Some(Listener { sender, bounds: ToolLimits::default().of_result() })), receiver)
    }

    /// The same events, whose results are within these bounds.
    pub(crate) fn within(mut self, bounds: ResultBounds) -> Self {
        if let Some(listener) = &mut self.0 {
            listener.bounds = bounds;
        }
        self
    }

    /// Whether anyone listens.
    #[must_use]
    pub fn are_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Tells that a tool starts.
    pub async fn started(&self, call: &ReadyCall) {
        let arguments = Text::from(call.call.arguments.as_str());
        self.send(call, ToolEventKind::Started { arguments }).await;
    }

    /// Tells how far a tool is.
    pub async fn progress(&self, call: &ReadyCall, part: Part) {
        self.send(call, ToolEventKind::Progress(part)).await;
    }

    /// Tells that a tool has answered.
    pub async fn finished(&self, call: &ReadyCall, result: &ToolResult) {
        self.ended(call.block, result).await;
    }

    /// Tells what the result of a call is, also of one that cannot run.
    pub(crate) async fn ended(&self, block: BlockId, result: &ToolResult) {
        if let Some(Listener { sender, bounds }) = &self.0 {
            let kind = ToolEventKind::Finished(cap_result(result.clone(), *bounds));
            let event = ToolEvent::new(block, result.call_id.clone(), result.name.clone(), kind);
            let _ = sender.send(event).await;
        }
    }

    async fn send(&self, call: &ReadyCall, kind: ToolEventKind) {
        if let Some(Listener { sender, .. }) = &self.0 {
            let event = ToolEvent::new(call.block, call.call.id.clone(), call.call.name.clone(), kind);
            // The reader lives as long as the loop; without it the tool is about to be dropped, too.
            let _ = sender.send(event).await;
        }
    }
}
