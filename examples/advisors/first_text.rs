//! An advisor that looks at chunks, and leaves what it measured in the turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use advisor_chain::{AdvisorChain, ChatRequest, StreamAdvisor, from_fn};

/// Left in the turn for others: how long it took until there was something to read.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstText(pub Duration);

/// Looks at chunks, without changing them.
pub fn first_text() -> impl StreamAdvisor {
    from_fn("first-text", |request: ChatRequest, next: AdvisorChain| async move {
        let (started, turn) = (Instant::now(), Arc::clone(&request.turn));
        let mut waiting = true;
        Ok(next.next_stream(request).await?.inspect_chunks(move |chunk| {
            if waiting && chunk.text().is_some() {
                waiting = false;
                turn.extensions().insert(FirstText(started.elapsed()));
            }
        }))
    })
}
