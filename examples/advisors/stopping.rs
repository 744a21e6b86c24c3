//! An advisor that ends an answer at a word.

use advisor_chain::chain::AdvisorRole;
use advisor_chain::{
    AdvisorChain, ChatRequest, Chunk, FinishReason, Phase, Placement, StreamAdvisor, from_fn,
};

/// Ends the answer at the chunk that completes a word. The text shown by then is the answer: the beginning of a word that
/// comes in pieces is part of it. `Guard` of `stream-policy` holds such a beginning back.
pub fn stopping(word: &'static str) -> impl StreamAdvisor {
    from_fn("stopping", move |request: ChatRequest, next: AdvisorChain| async move {
        let mut said = String::new();
        Ok(next.next_stream(request).await?.end_when(move |chunk| {
            if matches!(chunk, Chunk::AttemptRestarted { .. }) {
                said.clear();
            }
            said.push_str(chunk.text()?);
            said.contains(word).then_some(FinishReason::ContentFilter)
        }))
    })
    .with_placement(Placement { phase: Phase::ModelCall, role: AdvisorRole::InsideMemory })
}
