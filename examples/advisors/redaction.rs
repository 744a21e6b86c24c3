//! An advisor that replaces words while the answer streams.

use advisor_chain::chain::AdvisorRole;
use advisor_chain::chain::HoldBack;
use advisor_chain::{AdvisorChain, ChatRequest, Phase, Placement, StreamAdvisor, from_fn};

/// Replaces words while the answer streams, also if they arrive in pieces.
///
/// It holds back only text that may begin a word. It is inside memory, so the shown and the stored text are equal.
pub fn redaction(words: &'static [(&'static str, &'static str)]) -> impl StreamAdvisor {
    let longest = words.iter().map(|(word, _)| word.len()).max().unwrap_or_default();
    from_fn("redaction", move |request: ChatRequest, next: AdvisorChain| async move {
        let answer = next.next_stream(request).await?;
        Ok(answer.edit_text(HoldBack::Bytes(longest), |text| text.replace_all(words)))
    })
    .with_placement(Placement { phase: Phase::ModelCall, role: AdvisorRole::InsideMemory })
}
