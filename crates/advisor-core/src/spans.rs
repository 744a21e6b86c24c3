//! The tracing spans `turn` and `model_call`; `Answer`, which records an answer in its span; `note_turn` for the end
//! of a turn.

use message_aggregator::{ChatResponse, Chunk, FinishReason};
use tokio::time::Instant;
use tracing::{Span, field};

use crate::{ChatModel, ChatOptions, ChatRequest, Error, ResponseFormat, Result, TurnId};

/// The maximum length of a server's name in a span, in bytes.
const LONGEST_WORD: usize = 64;
/// The maximum length of a server's id in a span, in bytes.
const LONGEST_ID: usize = 128;

/// Creates the span of a turn. It closes after everything in the turn.
///
/// Fields of the end are declared here and recorded by [`note_turn`].
pub(crate) fn turn(id: &TurnId, request: &ChatRequest) -> Span {
    let conversation = request.conversation.as_ref().map(field::display);
    tracing::info_span!(
        "turn",
        turn.id = %id,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = conversation,
        gen_ai.response.finish_reasons = field::Empty,
        gen_ai.usage.input_tokens = field::Empty,
        gen_ai.usage.output_tokens = field::Empty,
        gen_ai.usage.cache_read.input_tokens = field::Empty,
        gen_ai.usage.cache_write.input_tokens = field::Empty,
        gen_ai.usage.reasoning.output_tokens = field::Empty,
        error.type = field::Empty,
    )
}

/// Creates the span of one model call. It closes when the model's answer ends, before anything outside runs.
///
/// `model_call` is the number that chunks have as their round; after a retry it differs from that of the span `round`.
/// Further fields follow OpenTelemetry's conventions for generative AI. Fields of the answer are declared here and
/// recorded by [`Answer`] and [`note_error`].
pub(crate) fn model_call(model: &dyn ChatModel, request: &ChatRequest) -> Span {
    let options = &request.options;
    tracing::info_span!(
        "model_call",
        model_call = request.round,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = model.name(),
        gen_ai.conversation.id = request.conversation.as_ref().map(field::display),
        gen_ai.output.type = options.response_format.as_ref().map(output_type),
        gen_ai.request.model = options.model.as_deref().or(model.model_name()),
        gen_ai.request.stream = true,
        gen_ai.request.max_tokens = options.max_tokens,
        gen_ai.request.temperature = options.temperature,
        gen_ai.request.top_p = options.top_p,
        gen_ai.request.seed = options.seed,
        gen_ai.request.stop_sequences = stop_sequences(options),
        gen_ai.response.id = field::Empty,
        gen_ai.response.model = field::Empty,
        gen_ai.response.finish_reasons = field::Empty,
        gen_ai.response.time_to_first_chunk = field::Empty,
        gen_ai.usage.input_tokens = field::Empty,
        gen_ai.usage.output_tokens = field::Empty,
        gen_ai.usage.cache_read.input_tokens = field::Empty,
        gen_ai.usage.cache_write.input_tokens = field::Empty,
        gen_ai.usage.reasoning.output_tokens = field::Empty,
        error.type = field::Empty,
    )
}

/// Returns the stop sequences as a JSON list, if there are any.
fn stop_sequences(options: &ChatOptions) -> Option<String> {
    if options.stop.is_empty() { None } else { serde_json::to_string(&options.stop).ok() }
}

fn output_type(format: &ResponseFormat) -> &'static str {
    match format {
        ResponseFormat::Text => "text",
        ResponseFormat::JsonObject | ResponseFormat::JsonSchema { .. } => "json",
    }
}

/// Records one answer in the span of its model call, from the items of its stream.
pub(crate) struct Answer {
    /// The start of the call; `None` once its first chunk is recorded, or if nobody listens.
    waiting_since: Option<Instant>,
}

impl Answer {
    /// Begins when the model is called.
    pub(crate) fn new(span: &Span) -> Self {
        Self { waiting_since: (!span.is_disabled()).then(Instant::now) }
    }

    /// Records the item, if it is the first chunk or the end.
    pub(crate) fn note(&mut self, span: &Span, item: &Result<Chunk>) {
        match item {
            Ok(Chunk::Completed(response)) => {
                note_origin(span, response);
                note_finish(span, response);
            }
            Ok(_) => {
                if let Some(since) = self.waiting_since.take() {
                    span.record("gen_ai.response.time_to_first_chunk", since.elapsed().as_secs_f64());
                }
            }
            Err(error) => note_error(span, error),
        }
    }
}

/// Records the failure of a model call and the data of its partial answer in the span.
pub(crate) fn note_error(span: &Span, error: &Error) {
    span.record("error.type", error.kind().as_str());
    if let Some(partial) = error.partial() {
        note_origin(span, partial);
    }
}

/// Records the end of a turn in its span: the tokens of all its rounds and the finish reason, or the error.
pub(crate) fn note_turn(span: &Span, item: &Result<Chunk>) {
    match item {
        Ok(Chunk::Completed(response)) if !span.is_disabled() => {
            note_usage(span, response);
            note_finish(span, response);
        }
        Ok(_) => {}
        Err(error) => {
            span.record("error.type", error.kind().as_str());
        }
    }
}

fn note_finish(span: &Span, response: &ChatResponse) {
    span.record("gen_ai.response.finish_reasons", field::debug([word_of(&response.finish.reason)]));
}

fn note_origin(span: &Span, response: &ChatResponse) {
    if let Some(id) = &response.response_id {
        span.record("gen_ai.response.id", bounded(id, LONGEST_ID));
    }
    if let Some(model) = &response.model {
        span.record("gen_ai.response.model", bounded(model, LONGEST_WORD));
    }
    note_usage(span, response);
}

/// Returns the beginning of a text that the server chooses.
fn bounded(text: &str, length: usize) -> &str {
    text.get(..text.floor_char_boundary(length)).unwrap_or_default()
}

fn note_usage(span: &Span, response: &ChatResponse) {
    let usage = response.usage.unwrap_or_default();
    span.record("gen_ai.usage.input_tokens", usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", usage.output_tokens);
    span.record("gen_ai.usage.cache_read.input_tokens", usage.cached_input_tokens);
    span.record("gen_ai.usage.cache_write.input_tokens", usage.cache_write_tokens);
    span.record("gen_ai.usage.reasoning.output_tokens", usage.reasoning_tokens);
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
