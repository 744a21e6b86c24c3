//! `ToolEvents`: sends the events of calls, and keeps those of each call in order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{BlockId, NotStartedReason, Part, ToolEvent, ToolEventKind, ToolResult};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::truncate::{ResultBounds, cap_result};
use crate::unrun_call::UnrunCall;
use crate::{ReadyCall, ToolLimits};

/// Sender for the events of tool calls. Cheap to clone; buffers a bounded number of events.
///
/// The events of a call stay in order for any reports: see [`ToolEventKind`]. A missing start is added. A
/// second start, and reports after the end, are discarded.
#[derive(Debug, Clone)]
pub struct ToolEvents(Option<Listener>);

#[derive(Debug, Clone)]
struct Listener {
    sender: mpsc::Sender<ToolEvent>,
    /// Limits for the results in events, the same as for the results that the model reads.
    bounds: ResultBounds,
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
    #[must_use]
    pub fn ignored() -> Self {
        Self(None)
    }

    /// Creates a sender and its receiver. At most `capacity` events are buffered; beyond that, tools wait.
    #[must_use]
    pub fn channel(capacity: usize) -> (Self, mpsc::Receiver<ToolEvent>) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        let bounds = ToolLimits::default().of_result();
        (Self(Some(Listener { sender, bounds, reported: Arc::default() })), receiver)
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
        let Some(listener) = self.moved(call.block, None, Reported::Start) else { return };
        let arguments = call.edited.clone().unwrap_or_else(|| call.call.arguments.as_str().into());
        let kind = ToolEventKind::Started { arguments };
        listener.send(event(call, kind)).await;
    }

    /// Reports the progress of a tool.
    pub async fn progress(&self, call: &ReadyCall, part: Part) {
        self.started(call).await;
        let Some(listener) = self.moved(call.block, Some(Reported::Start), Reported::Start) else { return };
        listener.send(event(call, ToolEventKind::Progress(part))).await;
    }

    /// Reports the result of a tool.
    pub async fn finished(&self, call: &ReadyCall, result: &ToolResult) {
        self.started(call).await;
        let Some(listener) = self.moved(call.block, Some(Reported::Start), Reported::End) else { return };
        let result = cap_result(result.clone(), listener.bounds);
        listener.send(event(call, ToolEventKind::Finished(result))).await;
    }

    /// Reports that a call does not start, with the error result that answers it.
    pub async fn not_started(&self, call: &ReadyCall, reason: NotStartedReason, result: &ToolResult) {
        self.not_run(&UnrunCall { block: call.block, reason, result: result.clone() }).await;
    }

    pub(crate) async fn not_run(&self, call: &UnrunCall) {
        let Some(listener) = self.moved(call.block, None, Reported::End) else { return };
        let result = cap_result(call.result.clone(), listener.bounds);
        listener.send(UnrunCall { result, ..*call }.into_event()).await;
    }

    /// Returns the listener if `from` is the last event of the call, which from then on is `to`.
    fn moved(&self, block: BlockId, from: Option<Reported>, to: Reported) -> Option<&Listener> {
        let listener = self.0.as_ref()?;
        let mut reported = listener.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = reported.get(&block).copied() == from;
        fits.then(|| reported.insert(block, to))?;
        Some(listener)
    }

    /// Returns the calls that an execution is about to run, for [`ExpectedCalls::complete`].
    pub(crate) fn expect(&self, calls: &[ReadyCall]) -> ExpectedCalls {
        let calls = if self.are_shown() { calls } else { &[] };
        let without_value = |call: &ReadyCall| ReadyCall {
            call: call.call.clone(),
            block: call.block,
            key: call.key.clone(),
            tool: Arc::clone(&call.tool),
            arguments: Value::Null,
            edited: call.edited.clone(),
        };
        ExpectedCalls { events: self.clone(), calls: calls.iter().map(without_value).collect() }
    }
}

/// Calls whose ends are shown, whether or not their execution reports them.
pub(crate) struct ExpectedCalls {
    events: ToolEvents,
    calls: Vec<ReadyCall>,
}

impl ExpectedCalls {
    /// Reports the start and the end of each call of which the execution did not report them.
    pub(crate) async fn complete(&self, results: &[ToolResult]) {
        for (call, result) in self.calls.iter().zip(results) {
            self.events.finished(call, result).await;
        }
    }
}

impl Listener {
    async fn send(&self, event: ToolEvent) {
        // The receiver lives as long as the loop. If it is gone, the tool is about to be dropped, too.
        let _ = self.sender.send(event).await;
    }
}

fn event(call: &ReadyCall, kind: ToolEventKind) -> ToolEvent {
    ToolEvent::new(call.block, call.call.id.clone(), call.call.name.clone(), kind)
}
