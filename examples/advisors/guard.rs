//! An advisor that answers in place of the model.

use advisor_chain::{AdvisorChain, ChatRequest, ChatResponse, FinishReason, Message, StreamAdvisor, from_fn};

/// Answers without the model if the user message is about passwords. Memory stores nothing of the turn.
pub fn guard() -> impl StreamAdvisor {
    from_fn("guard", |request: ChatRequest, next: AdvisorChain| async move {
        if request.last_user().is_some_and(|message| message.text().contains("password")) {
            let refusal = Message::assistant("I do not talk about passwords.");
            return Ok(request.answer(ChatResponse::new(0, refusal, FinishReason::Refusal)));
        }
        next.next_stream(request).await
    })
}
