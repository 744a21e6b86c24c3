use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{Effect, Progress, Tool, ToolCall, ToolInvocation, ToolOutput, ToolResult, Turn};
use futures::FutureExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::Instrument;

use crate::schema::Schemas;
use crate::{BatchCall, ToolEvents};

/// What bounds one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallBounds {
    pub(crate) timeout: Option<Duration>,
    /// When the turn's time is over.
    pub(crate) deadline: Option<Instant>,
}

/// Runs one call. Whatever goes wrong becomes an error result that the model can read.
pub(crate) async fn run_call(
    call: &BatchCall,
    turn: &Arc<Turn>,
    schemas: &Schemas,
    bounds: CallBounds,
    events: &ToolEvents,
) -> ToolResult {
    let (tool, arguments) = match prepare(call, schemas) {
        Ok(ready) => ready,
        Err(text) => {
            let result = ToolResult::error(&call.call, text);
            events.finished(call, &result).await;
            return result;
        }
    };
    let span = tracing::info_span!(
        "tool_run",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.call.name.as_str(),
        gen_ai.tool.call.id = call.call.id.as_str(),
    );
    async {
        events.started(call).await;
        let result = bounded(call, &tool, arguments, turn, bounds, events).await;
        events.finished(call, &result).await;
        result
    }
    .instrument(span)
    .await
}

/// Whether a call gets as far as its tool: it is known, and its arguments fit.
pub(crate) fn can_start(call: &BatchCall, schemas: &Schemas) -> bool {
    prepare(call, schemas).is_ok()
}

/// The tool and its arguments, or why the call cannot run.
fn prepare(call: &BatchCall, schemas: &Schemas) -> Result<(Arc<dyn Tool>, Value), String> {
    let ToolCall { name, complete, .. } = &call.call;
    let Some(tool) = &call.tool else {
        return Err(format!("there is no tool called `{name}`; call one of those you were given"));
    };
    if !complete {
        return Err(String::from("not started: the call was cut off before it was complete"));
    }
    let arguments = call
        .call
        .parsed_arguments()
        .map_err(|error| format!("not started: the arguments are no valid JSON: {error}"))?;
    schemas
        .check(tool.definition(), &arguments)
        .map_err(|wrong| format!("not started: the arguments do not fit the tool: {wrong}"))?;
    Ok((Arc::clone(tool), arguments))
}

async fn bounded(
    call: &BatchCall,
    tool: &Arc<dyn Tool>,
    arguments: Value,
    turn: &Arc<Turn>,
    bounds: CallBounds,
    events: &ToolEvents,
) -> ToolResult {
    let timeout = tool.definition().timeout.or(bounds.timeout);
    let until_timeout = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let run = run(call, tool, arguments, turn, events);
    let end = match (until_timeout, bounds.deadline) {
        (Some(timeout), Some(deadline)) => Some(timeout.min(deadline)),
        (timeout, deadline) => timeout.or(deadline),
    };
    let Some(end) = end else { return run.await };
    // Ready work is polled before its deadline.
    match tokio::time::timeout_at(end, run).await {
        Ok(result) => result,
        Err(_) if bounds.deadline == Some(end) => {
            let text = format!("stopped: the turn's time is over; {}", unknown_outcome(tool));
            ToolResult::error(&call.call, text)
        }
        Err(_) => {
            let took = timeout.unwrap_or_default().as_secs_f64();
            let unknown = unknown_outcome(tool);
            ToolResult::error(&call.call, format!("stopped: no answer within {took} s; {unknown}"))
        }
    }
}

fn unknown_outcome(tool: &Arc<dyn Tool>) -> &'static str {
    match tool.definition().effect {
        Some(Effect::AtMostOnce) => "the outcome is unknown, verify before retrying",
        _ => "the outcome is unknown",
    }
}

async fn run(
    call: &BatchCall,
    tool: &Arc<dyn Tool>,
    arguments: Value,
    turn: &Arc<Turn>,
    events: &ToolEvents,
) -> ToolResult {
    let (progress, reports) =
        if events.are_shown() { split(Progress::channel(4)) } else { (Progress::ignored(), None) };
    let invocation =
        ToolInvocation::new(call.call.clone(), arguments, call.key.clone(), progress, Arc::clone(turn));
    let tool = Arc::clone(tool);
    let running = AssertUnwindSafe(async move { tool.run(invocation).await }).catch_unwind();
    let outcome = match reports {
        None => running.await,
        Some(reports) => with_reports(running, reports, call, events).await,
    };
    match outcome {
        Ok(Ok(ToolOutput { parts, .. })) => ToolResult::new(&call.call, parts),
        // A model that reads nothing would take the call for a success.
        Ok(Err(error)) if error.text().trim().is_empty() => {
            ToolResult::error(&call.call, "the tool failed without saying why")
        }
        Ok(Err(error)) => ToolResult::error(&call.call, error.text().clone()),
        Err(panic) => ToolResult::error(&call.call, format!("the tool panicked: {}", panic_text(&*panic))),
    }
}

fn split<A, B>((a, b): (A, B)) -> (A, Option<B>) {
    (a, Some(b))
}

/// Runs a tool and passes on what it reports, in order, before its result.
async fn with_reports<F: Future>(
    running: F,
    mut reports: mpsc::Receiver<advisor_core::Part>,
    call: &BatchCall,
    events: &ToolEvents,
) -> F::Output {
    let mut running = std::pin::pin!(running);
    let outcome = loop {
        tokio::select! {
            biased;
            Some(part) = reports.recv() => events.progress(call, part).await,
            outcome = &mut running => break outcome,
        }
    };
    while let Ok(part) = reports.try_recv() {
        events.progress(call, part).await;
    }
    outcome
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}
