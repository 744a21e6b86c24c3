use tracing::{Span, field};

use crate::{ChatRequest, TurnId};

/// The span of a turn. It closes after everything in the turn.
pub(crate) fn turn(id: &TurnId, request: &ChatRequest) -> Span {
    let conversation = request.conversation.as_ref().map(field::display);
    tracing::info_span!(
        "turn",
        turn.id = %id,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = conversation,
    )
}

/// The span of one model call. It closes when the model's answer ends, before anything outside runs.
pub(crate) fn model_call(provider: &str, request: &ChatRequest) -> Span {
    tracing::info_span!(
        "model_call",
        round = request.round,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider,
        gen_ai.request.model = request.options.model.as_deref(),
    )
}
