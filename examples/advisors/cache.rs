//! An advisor that repeats known answers to equal requests.

use std::collections::VecDeque;
use std::sync::Arc;

use advisor_chain::messages::MessageList;
use advisor_chain::{
    AdvisorChain, AdvisorInfo, ChatOptions, ChatRequest, ChatResponse, ChunkStream, FinishReason, Phase,
    Placement, Result, StreamAdvisor, ToolDefinition, async_trait,
};
use tokio::sync::Mutex;

/// A request and its answer.
type Known = ((MessageList, ChatOptions, Vec<ToolDefinition>), ChatResponse);

/// Gives an answer that it knows again, for the same request, without asking the model. It knows the last 100 answers.
#[derive(Default)]
#[allow(missing_debug_implementations, reason = "what was asked and answered is not for logs")]
pub struct Cache(Mutex<VecDeque<Known>>);

impl AdvisorInfo for Cache {
    fn name(&self) -> &str {
        "cache"
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::ModelCall)
    }
}

#[async_trait]
impl StreamAdvisor for Cache {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let tools = request.tools.definitions().cloned().collect();
        let asked = (request.messages.clone(), request.options.clone(), tools);
        let known = self.0.lock().await.iter().find(|(known, _)| *known == asked).cloned();
        if let Some((_, answer)) = known {
            return Ok(request.answer(answer));
        }
        Ok(next.next_stream(request).await?.on_completed(move |response| async move {
            // A truncated answer is not repeated. A cached answer reports no token counts.
            if matches!(response.finish.reason, FinishReason::Stop | FinishReason::ToolCalls) {
                let mut known = self.0.lock().await;
                let mut answer = response.clone();
                answer.usage = None;
                known.push_front((asked, answer));
                known.truncate(100);
            }
            Ok(response)
        }))
    }
}
