//! An advisor that adds instructions to each request.

use advisor_chain::{AdvisorChain, ChatRequest, StreamAdvisor, from_fn};

/// Adds instructions, which are sent and never remembered.
pub fn polite() -> impl StreamAdvisor {
    from_fn("polite", |request: ChatRequest, next: AdvisorChain| async move {
        next.next_stream(request.with_system("Be polite.")).await
    })
}
