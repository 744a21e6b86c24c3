//! An advisor that asks again when an answer lacks a word, and makes the shown part void.

use advisor_chain::chain::AdvisorRole;
use advisor_chain::{
    AdvisorChain, ChatRequest, ChatResponse, Chunk, ChunkStream, FinishReason, Phase, Placement, Result,
    StreamAdvisor, from_fn,
};
use futures::{StreamExt, stream};

/// Asks again, once, if an answer that ends a turn lacks a word. The shown part of the first answer is then void.
pub fn ask_again(word: &'static str) -> impl StreamAdvisor {
    from_fn("ask-again", move |request: ChatRequest, next: AdvisorChain| async move {
        let first = next.next_stream(request.clone()).await?;
        let asking = Asking { live: first, again: Some((request, next)), word };
        // Each chunk of `advance` is emitted at once; `Completed` is the last one.
        Ok(ChunkStream::new(stream::unfold(asking, |mut asking| async {
            let chunk = asking.advance().await?;
            Some((chunk, asking))
        })))
    })
    .with_placement(Placement { phase: Phase::ModelCall, role: AdvisorRole::InsideMemory })
}

struct Asking {
    live: ChunkStream,
    /// Gone when the model was asked again.
    again: Option<(ChatRequest, AdvisorChain)>,
    word: &'static str,
}

impl Asking {
    async fn advance(&mut self) -> Option<Result<Chunk>> {
        let chunk = self.live.next().await?;
        let Ok(Chunk::Completed(answer)) = &chunk else { return Some(chunk) };
        if self.is_enough(answer) {
            return Some(chunk);
        }
        let Some((request, next)) = self.again.take() else { return Some(chunk) };
        // A cache inside would repeat the answer in the next turn.
        request.turn.reject_answer().await;
        let usage = answer.usage;
        // Among the instructions: a message after the user's needs the answer between, which may be empty.
        let request = request.with_system(format!("Use the word {} in your answer.", self.word));
        match next.next_stream(request).await {
            // The turn has used the tokens of both.
            Ok(second) => {
                self.live =
                    second.on_completed(move |second| async move { Ok(second.with_added_usage(usage)) });
            }
            Err(error) => return Some(Err(error)),
        }
        Some(Ok(Chunk::AttemptRestarted { round: answer.round() }))
    }

    fn is_enough(&self, answer: &ChatResponse) -> bool {
        // A limit would give the same answer again, and a paused answer goes on.
        let is_kept = matches!(answer.finish.reason, FinishReason::Limit(_) | FinishReason::Paused);
        is_kept || answer.tool_calls().next().is_some() || answer.text().contains(self.word)
    }
}
