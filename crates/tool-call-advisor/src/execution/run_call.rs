//! `run_call`: runs one call with timeout and progress; turns every failure into an error result.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::{CatchPanics, Effect, Progress, ToolInvocation, ToolOutput, ToolResult};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{Instrument, field};

use crate::{ReadyCall, ToolBatch, ToolEvents};

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
    let events = &batch.events;
    let (progress, reports) = if events.are_shown() {
        let (progress, reports) = Progress::channel(4);
        (progress, Some(reports))
    } else {
        (Progress::ignored(), None)
    };
    let turn = Arc::clone(&batch.turn);
    let invocation = ToolInvocation::new(call.call.clone(), arguments, call.key.clone(), progress, turn)
        .with_conversation(batch.conversation.clone());
    let (invocation, guard) = invocation.guarded();
    let tool = Arc::clone(&call.tool);
    let running = CatchPanics::new(async move {
        let _guard = guard;
        tool.run(invocation).await
    });
    let outcome = match reports {
        None => running.await,
        Some(reports) => with_reports(running, reports, call, events).await,
    };
    match outcome {
        Ok(Ok(ToolOutput { parts, .. })) => ToolResult::new(&call.call, parts),
        // Without a text, the model would take the call for a success.
        Ok(Err(error)) if error.text().trim().is_empty() => {
            ToolResult::error(&call.call, "the tool failed without saying why")
        }
        Ok(Err(error)) => ToolResult::error(&call.call, error.text().clone()),
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
    mut reports: mpsc::Receiver<advisor_core::Part>,
    call: &ReadyCall,
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
