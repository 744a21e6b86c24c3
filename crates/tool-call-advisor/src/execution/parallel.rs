use std::collections::VecDeque;
use std::time::Duration;

use advisor_core::{Result, ToolResult, async_trait};
use futures::stream::{FuturesUnordered, StreamExt};

use crate::execution::run_call::run_call;
use crate::{ToolBatch, ToolExecution};

/// Runs tools in this process: several at a time, exclusive ones alone, each within its time.
///
/// Calls start in call order. An exclusive call waits until the ones before it are done, and those
/// after it wait for it. Everything runs inside the turn: nothing is spawned, and a dropped turn drops
/// its tools. Times are measured by a tokio runtime with its clock enabled.
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
    /// At most 8 tools at a time, each for 120 seconds unless it says otherwise itself.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with another number of tools at a time, at least one.
    #[must_use]
    pub fn with_concurrency(self, concurrency: usize) -> Self {
        Self { concurrency: concurrency.max(1), ..self }
    }

    /// The same with another time for each tool that does not say so itself; absent, any time.
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
            // Only one ran if it ran alone.
            alone = false;
            if let Some(slot) = results.get_mut(place) {
                *slot = Some(result);
            }
        }
        Ok(results.into_iter().flatten().collect())
    }
}
