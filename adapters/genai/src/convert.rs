//! Converts the events of an answer to deltas.

mod calls;

use std::sync::Arc;

use advisor_core::{Delta, DeltaKind, Finish, FinishReason, ProviderData, Text, Usage};
use genai::chat::{ChatStreamEvent, ContentPart, StopReason, StreamEnd, Usage as Counts};
use provider_http::names::WireNames;

use calls::Calls;
pub(crate) use calls::signatures;

/// Turns the events of one answer into deltas.
#[derive(Debug)]
pub(crate) struct Converter {
    calls: Calls,
    /// The format name of data that goes back to the server.
    format: Text,
    model: Text,
    sent_origin: bool,
}

impl Converter {
    pub(crate) fn new(names: Arc<WireNames>, format: Text, model: Text) -> Self {
        Self { calls: Calls::new(names, format.clone()), format, model, sent_origin: false }
    }

    pub(crate) fn convert(&mut self, event: ChatStreamEvent) -> Vec<Delta> {
        let mut deltas = Vec::new();
        if !self.sent_origin {
            self.sent_origin = true;
            deltas.push(Delta::origin(None, Some(self.model.clone())));
        }
        match event {
            ChatStreamEvent::Chunk(text) => deltas.push(Delta::text(text.content)),
            ChatStreamEvent::ReasoningChunk(text) => deltas.push(Delta::reasoning(text.content)),
            ChatStreamEvent::ToolCallChunk(call) => {
                deltas.extend(self.calls.grown(call.tool_call).map(Delta::tool_call));
            }
            ChatStreamEvent::End(end) => self.end(end, &mut deltas),
            // Signatures arrive in pieces here, and whole at the end.
            ChatStreamEvent::Start
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::ThoughtSignatureChunk(_) => {}
        }
        deltas
    }

    fn end(&mut self, end: StreamEnd, deltas: &mut Vec<Delta>) {
        if let Some(id) = end.captured_response_id {
            deltas.push(Delta::origin(Some(id.into()), Some(self.model.clone())));
        }
        let mut signed = Vec::new();
        for part in end.captured_content.into_iter().flat_map(|content| content.into_parts()) {
            match part {
                ContentPart::ToolCall(call) => {
                    deltas.extend(self.calls.completed(call).map(Delta::tool_call));
                }
                ContentPart::ThoughtSignature(_)
                | ContentPart::ReasoningContent(_)
                | ContentPart::Custom(_) => signed.push(part),
                _ => {}
            }
        }
        if let Some(value) = serde_json::to_value(&signed).ok().filter(|_| !signed.is_empty()) {
            let data = ProviderData::new(self.format.clone(), value);
            deltas.push(DeltaKind::ReasoningData(Box::new(data)).into());
        }
        deltas.extend(end.captured_usage.as_ref().and_then(usage).map(Delta::usage));
        deltas.extend(end.captured_stop_reason.as_ref().map(finish).map(Delta::finish));
    }
}

fn usage(counts: &Counts) -> Option<Usage> {
    let count = |count: Option<i32>| count.and_then(|count| u64::try_from(count).ok());
    let (input, output) = (counts.prompt_tokens_details.as_ref(), counts.completion_tokens_details.as_ref());
    let mut usage = Usage::default();
    usage.input_tokens = count(counts.prompt_tokens);
    usage.output_tokens = count(counts.completion_tokens);
    usage.total_tokens = count(counts.total_tokens);
    usage.cached_input_tokens = count(input.and_then(|details| details.cached_tokens));
    usage.cache_write_tokens = count(input.and_then(|details| details.cache_creation_tokens));
    usage.reasoning_tokens = count(output.and_then(|details| details.reasoning_tokens));
    (usage != Usage::default()).then_some(usage)
}

fn finish(reason: &StopReason) -> Finish {
    let word = reason.raw();
    let known = match reason {
        StopReason::Completed(_) | StopReason::StopSequence(_) => FinishReason::Stop,
        StopReason::MaxTokens(_) => FinishReason::Length,
        StopReason::ToolCall(_) => FinishReason::ToolCalls,
        StopReason::ContentFilter(_) if word == "refusal" => FinishReason::Refusal,
        StopReason::ContentFilter(_) => FinishReason::ContentFilter,
        StopReason::Other(_) => match word {
            "eos" | "eos_token" => FinishReason::Stop,
            "pause_turn" => FinishReason::Paused,
            // The server gave up in the middle, so an open call must not run.
            "error" | "failed" | "cancelled" | "MALFORMED_FUNCTION_CALL" => FinishReason::Interrupted,
            other => FinishReason::Other(other.into()),
        },
    };
    Finish::written(known, word)
}
