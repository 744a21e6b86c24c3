//! An advisor that repeats a request after an error that can pass.

use advisor_chain::{AdvisorChain, ChatRequest, Phase, Placement, StreamAdvisor, from_fn};

/// Asks once more after an error that can pass, if nothing was shown.
pub fn once_more() -> impl StreamAdvisor {
    from_fn("once-more", |request: ChatRequest, next: AdvisorChain| async move {
        match next.next_stream(request.clone()).await {
            Err(error) if error.is_retryable() => next.next_stream(request).await,
            answer => answer,
        }
    })
    .with_placement(Placement::new(Phase::ModelCall))
}
