//! `TurnWatch`: the advisor that counts what is inside a turn.

use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, ChatRequest, Chunk, ChunkStream, DecidedCallObserver, Prompt, Result,
    StreamAdvisor, async_trait,
};
use tokio::time::Instant;

use super::Metrics;

/// An advisor of one turn that counts its tokens and tool runs, and measures the time to its first token.
struct TurnWatch {
    metrics: Arc<Metrics>,
    started: Instant,
}

/// Returns the prompt of a turn that is counted, also with the calls that a person has decided.
pub(crate) fn watched(prompt: Prompt, metrics: Option<&Arc<Metrics>>) -> Prompt {
    let Some(metrics) = metrics.cloned() else { return prompt };
    let of_decided = Arc::clone(&metrics);
    let decided = DecidedCallObserver::new(move |result| of_decided.decided_call_ended(result));
    prompt.advisor(TurnWatch { metrics, started: Instant::now() }).extension(decided)
}

impl AdvisorInfo for TurnWatch {}

#[async_trait]
impl StreamAdvisor for TurnWatch {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let mut first = Some(self.started);
        Ok(next.next_stream(request).await?.inspect_chunks(move |chunk| match chunk {
            Chunk::Delta { .. } => {
                if let Some(started) = first.take() {
                    self.metrics.first_token(started.elapsed().as_secs_f64());
                }
            }
            Chunk::Tool(event) => self.metrics.tool_ended(&event.kind),
            Chunk::Completed(response) => {
                response.usage().into_iter().for_each(|usage| self.metrics.used(usage))
            }
            _ => {}
        }))
    }
}
