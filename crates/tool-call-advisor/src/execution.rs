//! `ToolExecution`, `ToolBatch` and `ReadyCall`: the replaceable interface that runs calls. `ParallelTools` runs them in this process, `ToolEvents` sends their events.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use advisor_core::{
    BlockId, CallKey, ChatRequest, ConversationKey, Effect, Part, Progress, Result, Text, Tool, ToolCall,
    ToolEvent, ToolEventKind, ToolInvocation, ToolOutput, ToolResult, Turn, async_trait, catch_panics,
};
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{Instrument, field};

use crate::ToolLimits;
use crate::truncate::cap_result;

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

impl ReadyCall {
    /// Returns a copy for its events, without its arguments as a value.
    pub(crate) fn without_value(&self) -> Self {
        Self {
            call: self.call.clone(),
            block: self.block,
            key: self.key.clone(),
            tool: Arc::clone(&self.tool),
            arguments: Value::Null,
            edited: self.edited.clone(),
        }
    }
}

impl ToolBatch {
    /// Creates a batch without calls.
    pub(crate) fn new(request: &ChatRequest, events: ToolEvents, deadline: Option<Instant>) -> Self {
        let (turn, conversation) = (Arc::clone(&request.turn), request.conversation.clone());
        Self { calls: Vec::new(), turn, conversation, events, deadline }
    }
}

/// Runs tools in this process: several at a time, exclusive ones alone, each with a timeout.
///
/// Calls start in call order. An exclusive call waits until all earlier ones are done, and later ones wait for it.
/// Nothing is spawned: tools run inside the turn, and dropping the turn drops them. Timeouts need a tokio runtime
/// with its timer enabled.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "callers write it with `..ParallelTools::default()`")]
pub struct ParallelTools {
    /// The number of tools that run at a time, at least one. Default: 8.
    pub concurrency: usize,
    /// The timeout for tools without their own; `None` means no timeout. Default: 120 seconds.
    pub timeout: Option<Duration>,
}

impl Default for ParallelTools {
    fn default() -> Self {
        Self { concurrency: 8, timeout: Some(Duration::from_secs(120)) }
    }
}

#[async_trait]
impl ToolExecution for ParallelTools {
    async fn execute(&self, mut batch: ToolBatch) -> Result<Vec<ToolResult>> {
        let calls = std::mem::take(&mut batch.calls);
        let mut results: Vec<_> = calls.iter().map(|_| None).collect();
        let mut waiting: VecDeque<_> = calls.into_iter().enumerate().collect();
        let mut running = FuturesUnordered::new();
        let mut alone = false;
        loop {
            while let Some((_, next)) = waiting.front() {
                let exclusive = next.tool.definition().exclusive;
                if alone || running.len() >= self.concurrency.max(1) || (exclusive && !running.is_empty()) {
                    break;
                }
                alone = exclusive;
                let Some((place, call)) = waiting.pop_front() else { break };
                let running_call = run_call(call, &batch, self.timeout);
                running.push(async move { (place, running_call.await) });
            }
            let Some((place, result)) = running.next().await else { break };
            // An exclusive call runs alone, so it is the one that has finished.
            alone = false;
            if let Some(slot) = results.get_mut(place) {
                *slot = Some(result);
            }
        }
        Ok(results.into_iter().flatten().collect())
    }
}

/// Runs one call. Every failure becomes an error result that the model can read.
pub(crate) async fn run_call(
    mut call: ReadyCall,
    batch: &ToolBatch,
    timeout: Option<Duration>,
) -> ToolResult {
    let events = &batch.events;
    let arguments = std::mem::take(&mut call.arguments);
    let span = tracing::info_span!(
        "tool_run",
        gen_ai.operation.name = "execute_tool",
        gen_ai.conversation.id = batch.conversation.as_ref().map(field::display),
        gen_ai.tool.name = call.call.name.as_str(),
        gen_ai.tool.call.id = call.call.id.as_str(),
        error.type = field::Empty,
    );
    async {
        events.started(&call).await;
        let result = bounded(&call, arguments, batch, timeout).await;
        if result.is_error {
            span.record("error.type", "tool_error");
        }
        events.finished(&call, &result).await;
        result
    }
    .instrument(span.clone())
    .await
}

async fn bounded(
    call: &ReadyCall,
    arguments: Value,
    batch: &ToolBatch,
    timeout: Option<Duration>,
) -> ToolResult {
    let timeout = call.tool.definition().timeout.or(timeout);
    let until_timeout = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let run = run(call, arguments, batch);
    let end = match (until_timeout, batch.deadline) {
        (Some(timeout), Some(deadline)) => Some(timeout.min(deadline)),
        (timeout, deadline) => timeout.or(deadline),
    };
    let Some(end) = end else { return run.await };
    // The tool is polled before its deadline.
    match tokio::time::timeout_at(end, run).await {
        Ok(result) => result,
        Err(_) if batch.deadline == Some(end) => {
            let text = format!("stopped: the turn's time is over; {}", unknown_outcome(call));
            ToolResult::error(&call.call, text)
        }
        Err(_) => {
            let took = timeout.unwrap_or_default().as_secs_f64();
            let unknown = unknown_outcome(call);
            ToolResult::error(&call.call, format!("stopped: no answer within {took} s; {unknown}"))
        }
    }
}

fn unknown_outcome(call: &ReadyCall) -> &'static str {
    match call.tool.definition().effect {
        Some(Effect::AtMostOnce) => "the outcome is unknown, verify before retrying",
        _ => "the outcome is unknown",
    }
}

async fn run(call: &ReadyCall, arguments: Value, batch: &ToolBatch) -> ToolResult {
    let (progress, reports) = Progress::channel(4);
    let invocation = ToolInvocation {
        call: call.call.clone(),
        arguments,
        key: call.key.clone(),
        progress,
        turn: Arc::clone(&batch.turn),
        conversation: batch.conversation.clone(),
    };
    let tool = Arc::clone(&call.tool);
    let running = catch_panics(async move { tool.run(invocation).await });
    match with_reports(running, reports, call, &batch.events).await {
        Ok(Ok(ToolOutput { parts, .. })) => ToolResult::new(&call.call, parts),
        // Without a text, the model would take the call for a success.
        Ok(Err(error)) if error.text.trim().is_empty() => {
            ToolResult::error(&call.call, "the tool failed without saying why")
        }
        Ok(Err(error)) => ToolResult::error(&call.call, error.text.clone()),
        Err(panic) => {
            let outcome = match call.tool.definition().effect {
                Some(Effect::AtMostOnce) => format!("; {}", unknown_outcome(call)),
                _ => String::new(),
            };
            ToolResult::error(&call.call, format!("the tool panicked: {panic}{outcome}"))
        }
    }
}

/// Runs a tool and forwards its progress reports, in order, before its result.
async fn with_reports<F: Future>(
    running: F,
    mut reports: mpsc::Receiver<Part>,
    call: &ReadyCall,
    events: &ToolEvents,
) -> F::Output {
    let mut running = std::pin::pin!(running);
    let outcome = loop {
        tokio::select! {
            // A tool that reports nothing drops its sender at once, which would wake a receiver that already waits.
            biased;
            outcome = &mut running => break outcome,
            Some(part) = reports.recv() => events.progress(call, part).await,
        }
    };
    while let Ok(part) = reports.try_recv() {
        events.progress(call, part).await;
    }
    outcome
}

/// Sender for the events of tool calls. Cheap to clone; buffers a bounded number of events.
///
/// The events of a call stay in order for any reports: see [`ToolEventKind`]. A missing start is added. A
/// second start, and reports after the end, are discarded.
#[derive(Debug, Clone)]
pub struct ToolEvents(Option<Listener>);

#[derive(Debug, Clone)]
struct Listener {
    sender: mpsc::Sender<ToolEvent>,
    limits: Arc<ToolLimits>,
    reported: Arc<Mutex<HashMap<BlockId, Reported>>>,
}

/// The last event of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reported {
    Start,
    End,
}

impl ToolEvents {
    /// Creates a sender that discards events.
    pub(crate) fn ignored() -> Self {
        Self(None)
    }

    /// Creates a sender and its receiver. At most `capacity` events are buffered; beyond that, tools wait. Results in events
    /// have the same limits as those that the model reads.
    pub(crate) fn channel(capacity: usize, limits: Arc<ToolLimits>) -> (Self, mpsc::Receiver<ToolEvent>) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        (Self(Some(Listener { sender, limits, reported: Arc::default() })), receiver)
    }

    /// Returns whether events are sent instead of discarded.
    pub(crate) fn are_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Reports that a tool starts.
    pub async fn started(&self, call: &ReadyCall) {
        let Some(listener) = self.moved(call.block, None, Reported::Start) else { return };
        let arguments = call.edited.clone().unwrap_or_else(|| call.call.arguments.as_str().into());
        let kind = ToolEventKind::Started { arguments };
        listener.send(event(call, kind)).await;
    }

    /// Reports the progress of a tool.
    pub async fn progress(&self, call: &ReadyCall, part: Part) {
        self.started(call).await;
        let Some(listener) = self.moved(call.block, Some(Reported::Start), Reported::Start) else { return };
        listener.send(event(call, ToolEventKind::Progress { part })).await;
    }

    /// Reports the result of a tool.
    pub async fn finished(&self, call: &ReadyCall, result: &ToolResult) {
        self.started(call).await;
        let Some(listener) = self.moved(call.block, Some(Reported::Start), Reported::End) else { return };
        let result = cap_result(result.clone(), &listener.limits);
        listener.send(event(call, ToolEventKind::Finished { result })).await;
    }

    /// Reports an event of kind [`ToolEventKind::NotStarted`].
    pub(crate) async fn not_run(&self, mut event: ToolEvent) {
        let Some(listener) = self.moved(event.block, None, Reported::End) else { return };
        if let ToolEventKind::NotStarted { result, .. } = &mut event.kind {
            *result = cap_result(result.clone(), &listener.limits);
        }
        listener.send(event).await;
    }

    /// Returns the listener if `from` is the last event of the call, which from then on is `to`.
    fn moved(&self, block: BlockId, from: Option<Reported>, to: Reported) -> Option<&Listener> {
        let listener = self.0.as_ref()?;
        let mut reported = listener.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = reported.get(&block).copied() == from;
        fits.then(|| reported.insert(block, to))?;
        Some(listener)
    }
}

impl Listener {
    async fn send(&self, event: ToolEvent) {
        // The receiver lives as long as the loop. If it is gone, the tool is about to be dropped, too.
        let _ = self.sender.send(event).await;
    }
}

fn event(call: &ReadyCall, kind: ToolEventKind) -> ToolEvent {
    ToolEvent { block: call.block, call_id: call.call.id.clone(), name: call.call.name.clone(), kind }
}
