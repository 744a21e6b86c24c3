use std::fmt;
use std::sync::Arc;

use advisor_core::{
    BlockId, CallKey, Part, Result, Text, Tool, ToolCall, ToolEvent, ToolEventKind, ToolResult, Turn,
    async_trait,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::cap::{ResultBounds, cap_result};

/// Runs the calls of one answer. Replace it to run tools elsewhere, such as in a durable engine.
///
/// # Ordering
/// It is asked after everything inside the loop is done with the answer and the answer is recorded, and so are the
/// starts of calls that must not run twice ([`Effect::AtMostOnce`](advisor_core::Effect)): it runs these once.
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
    pub calls: Vec<BatchCall>,
    /// The turn.
    pub turn: Arc<Turn>,
    /// Where to tell what happens.
    pub events: ToolEvents,
    /// When the turn's time is over, if it is bounded.
    pub deadline: Option<Instant>,
}

/// One call of a [`ToolBatch`].
#[derive(Clone)]
#[non_exhaustive]
pub struct BatchCall {
    /// The call.
    pub call: ToolCall,
    /// Its block.
    pub block: BlockId,
    /// Its stable name.
    pub key: CallKey,
    /// The tool, if one of that name was offered.
    pub tool: Option<Arc<dyn Tool>>,
}

impl fmt::Debug for BatchCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchCall")
            .field("key", &self.key)
            .field("name", &self.call.name)
            .field("known", &self.tool.is_some())
            .finish_non_exhaustive()
    }
}

impl ToolBatch {
    pub(crate) fn new(
        calls: Vec<BatchCall>,
        turn: Arc<Turn>,
        events: ToolEvents,
        deadline: Option<Instant>,
    ) -> Self {
        Self { calls, turn, events, deadline }
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
    pub(crate) fn ignored() -> Self {
        Self(None)
    }

    pub(crate) fn channel(bounds: ResultBounds) -> (Self, mpsc::Receiver<ToolEvent>) {
        let (sender, receiver) = mpsc::channel(16);
        (Self(Some(Listener { sender, bounds })), receiver)
    }

    /// Whether anyone listens.
    #[must_use]
    pub fn are_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Tells that a tool starts.
    pub async fn started(&self, call: &BatchCall) {
        let arguments = Text::from(call.call.arguments.as_str());
        self.send(call, ToolEventKind::Started { arguments }).await;
    }

    /// Tells how far a tool is.
    pub async fn progress(&self, call: &BatchCall, part: Part) {
        self.send(call, ToolEventKind::Progress(part)).await;
    }

    /// Tells that a tool has answered.
    pub async fn finished(&self, call: &BatchCall, result: &ToolResult) {
        if let Some(listener) = &self.0 {
            let result = cap_result(result.clone(), listener.bounds);
            self.send(call, ToolEventKind::Finished(result)).await;
        }
    }

    async fn send(&self, call: &BatchCall, kind: ToolEventKind) {
        if let Some(Listener { sender, .. }) = &self.0 {
            let event = ToolEvent::new(call.block, call.call.id.clone(), call.call.name.clone(), kind);
            // The reader lives as long as the loop; without it the tool is about to be dropped, too.
            let _ = sender.send(event).await;
        }
    }
}
