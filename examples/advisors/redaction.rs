use advisor_chain::chain::HoldBack;
use advisor_chain::{AdvisorChain, ChatRequest, Phase, Placement, StreamAdvisor, from_fn};

/// Replaces words while the answer streams, also where they come in pieces.
///
/// It holds back only what may be the beginning of a word. It stands inside memory, so what is shown is what is remembered.
pub fn redaction(words: &'static [(&'static str, &'static str)]) -> impl StreamAdvisor {
    let longest = words.iter().map(|(word, _)| word.len()).max().unwrap_or_default();
    from_fn("redaction", move |request: ChatRequest, next: AdvisorChain| async move {
        let answer = next.next_stream(request).await?;
        Ok(answer.edit_text(HoldBack::Bytes(longest), |text| text.replace_all(words)))
    })
    .placed(Placement::new(Phase::ModelCall).inside_memory())
}
