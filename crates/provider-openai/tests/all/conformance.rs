//! Chat Completions pass the conformance suite for providers.

use std::sync::Arc;

use advisor_conformance::provider::{AnswerPart, WireFamily};
use advisor_core::{ChatModel, FinishReason, Usage};
use advisor_testkit::ChatTranscript;
use bytes::Bytes;
use provider_openai::OpenAiModel;
use provider_openai::backoff::Backoff;
use serde_json::{Value, json};

advisor_conformance::provider_conformance!(ChatCompletions);

/// A server of Chat Completions as OpenAI's.
struct ChatCompletions;

impl WireFamily for ChatCompletions {
    fn model(&self, url: &str) -> Arc<dyn ChatModel> {
        let model = OpenAiModel::new("example-model").with_base_url(format!("{url}/v1"));
        Arc::new(model.with_api_key("canary-key-0123456789").with_retries(Backoff::none()))
    }

    fn write(&self, parts: &[AnswerPart]) -> Option<Vec<Bytes>> {
        let (mut transcript, mut calls, mut written) = (ChatTranscript::new("example-model"), 0, 0);
        let mut all = Vec::new();
        for part in parts {
            transcript = appended(transcript, part, &mut calls)?;
            let body = transcript.clone().without_done();
            all.push(body.slice(written..));
            written = body.len();
        }
        Some(all)
    }
}

fn appended(transcript: ChatTranscript, part: &AnswerPart, calls: &mut i64) -> Option<ChatTranscript> {
    let mut index = || {
        *calls += 1;
        *calls - 1
    };
    Some(match part {
        AnswerPart::Text(text) => transcript.text(text),
        AnswerPart::Reasoning(text) => transcript.reasoning(text),
        AnswerPart::Refusal(text) => transcript.refusal(text),
        AnswerPart::Call { id, name, arguments } => transcript.tool_call(index(), id, name, arguments),
        AnswerPart::CutCall { id, name, arguments } => transcript.tool_call(index(), id, name, &[*arguments]),
        AnswerPart::Usage(usage) => transcript.raw(usage_chunk(usage)),
        AnswerPart::Finish(reason) => transcript.finish(word(reason)?),
        AnswerPart::End => transcript.raw("[DONE]"),
        AnswerPart::Failure(message) => {
            transcript.raw(json!({ "error": { "message": message, "type": "server_error" } }))
        }
        AnswerPart::Unknown => transcript.raw(json!({ "object": "chat.completion.later", "later": true })),
        AnswerPart::Malformed => transcript.raw("{\"choices\":}"),
        _ => return None,
    })
}

fn word(reason: &FinishReason) -> Option<&'static str> {
    match reason {
        FinishReason::Stop => Some("stop"),
        FinishReason::Length => Some("length"),
        FinishReason::ToolCalls => Some("tool_calls"),
        _ => None,
    }
}

fn usage_chunk(usage: &Usage) -> Value {
    json!({ "choices": [], "usage": {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "prompt_tokens_details": { "cached_tokens": usage.cached_input_tokens },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning_tokens },
    } })
}
