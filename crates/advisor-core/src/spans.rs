use message_aggregator::{ChatResponse, Chunk, FinishReason};
use tracing::{Span, field};

use crate::{ChatModel, ChatRequest, Error, Result, TurnId};

/// The maximum length of a server's text in a span, in bytes.
const LONGEST_WORD: usize = 64;

/// Creates the span of a turn. It closes after everything in the turn.
pub(crate) fn turn(id: &TurnId, request: &ChatRequest) -> Span {
    let conversation = request.conversation.as_ref().map(field::display);
    tracing::info_span!(
        "turn",
        turn.id = %id,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = conversation,
    )
}

/// Creates the span of one model call. It closes when the model's answer ends, before anything outside runs.
///
/// Its fields follow OpenTelemetry's conventions for generative AI. Fields of the answer are declared here and
/// recorded by [`note_answer`] and [`note_error`].
pub(crate) fn model_call(model: &dyn ChatModel, request: &ChatRequest) -> Span {
    tracing::info_span!(
        "model_call",
        round = request.round,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = model.name(),
        gen_ai.request.model = request.options.model.as_deref().or(model.model_name()),
        gen_ai.response.model = field::Empty,
        gen_ai.response.finish_reasons = field::Empty,
        gen_ai.usage.input_tokens = field::Empty,
        gen_ai.usage.output_tokens = field::Empty,
        error.type = field::Empty,
    )
}

/// Records the end of an answer in the span of its model call, if `item` is the end.
pub(crate) fn note_end(span: &Span, item: &Result<Chunk>) {
    match item {
        Ok(Chunk::Completed(response)) => note_answer(span, response),
        Ok(_) => {}
        Err(error) => note_error(span, error),
    }
}

/// Records the failure of a model call and the data of its partial answer in the span.
pub(crate) fn note_error(span: &Span, error: &Error) {
    span.record("error.type", error.kind().as_str());
    if let Some(partial) = error.partial() {
        note_origin(span, partial);
    }
}

fn note_answer(span: &Span, response: &ChatResponse) {
    note_origin(span, response);
    let reasons: Vec<&str> = response.choices().iter().map(|choice| word_of(&choice.finish.reason)).collect();
    span.record("gen_ai.response.finish_reasons", field::debug(reasons));
}

fn note_origin(span: &Span, response: &ChatResponse) {
    if let Some(model) = response.model() {
        // The server chooses this name, so its length is bounded.
        span.record("gen_ai.response.model", model.get(..model.floor_char_boundary(LONGEST_WORD)));
    }
    let usage = response.usage().copied().unwrap_or_default();
    span.record("gen_ai.usage.input_tokens", usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", usage.output_tokens);
}

/// Returns the reason as one word. An unknown word of a provider is passed through if it has the form of a word.
fn word_of(reason: &FinishReason) -> &str {
    let is_word = |word: &str| {
        let in_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        word.len() <= LONGEST_WORD && word.bytes().all(in_word)
    };
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Refusal => "refusal",
        FinishReason::Paused => "paused",
        FinishReason::ReturnDirect => "return_direct",
        FinishReason::Limit(_) => "limit",
        FinishReason::Empty => "empty",
        FinishReason::Interrupted => "interrupted",
        FinishReason::Other(word) if is_word(word) => word,
        _ => "other",
    }
}
