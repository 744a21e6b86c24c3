//! `ParallelTools`: the default execution, with bounded concurrency, exclusive tools and timeouts.

use std::collections::VecDeque;
use std::time::Duration;

use advisor_core::{Result, ToolResult, async_trait};
use futures::stream::{FuturesUnordered, StreamExt};

use crate::execution::run_call::run_call;
use crate::{ToolBatch, ToolExecution};

/// Runs tools in this process: several at a time, exclusive ones alone, each with a timeout.
///
/// Calls start in call order. An exclusive call waits until all earlier ones are done, and later ones wait for it.
/// Nothing is spawned: tools run inside the turn, and dropping the turn drops them. Timeouts need a tokio runtime
/// with its timer enabled.
#[derive(Debug)]
pub struct ParallelTools {
    concurrency: usize,
    timeout: Option<Duration>,
}

impl Default for ParallelTools {
    fn default() -> Self {
        Self { concurrency: 8, timeout: Some(Duration::from_secs(120)) }
    }
}

impl ParallelTools {
    /// Creates an execution with at most 8 tools at a time and a timeout of 120 seconds. A tool's own timeout
    /// takes precedence.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of tools that run at a time, at least one.
    #[must_use]
    pub fn with_concurrency(self, concurrency: usize) -> Self {
        Self { concurrency: concurrency.max(1), ..self }
    }

    /// Sets the timeout for tools without their own; `None` means no timeout.
    #[must_use]
    pub fn with_timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
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
                if alone || running.len() >= self.concurrency || (exclusive && !running.is_empty()) {
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
