//! A server of Chat Completions as OpenAI's.

use std::sync::Arc;

use advisor_conformance::provider::{AnswerPart, WireFamily};
use advisor_core::{ChatModel, FinishReason, Usage};
use advisor_testkit::ChatTranscript;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::Ask;

/// The wire format, for the conformance suite of the testkit.
#[derive(Debug, Clone, Copy)]
pub struct ChatCompletions {
    /// Makes the model.
    pub ask: Ask,
    /// Whether the client reads reasoning.
    pub reasoning: bool,
    /// Whether the client reads refusals.
    pub refusals: bool,
    /// Returns the token counts that the client passes on.
    pub usage: fn(Usage) -> Usage,
}

impl WireFamily for ChatCompletions {
    fn model(&self, url: &str) -> Arc<dyn ChatModel> {
        (self.ask)(url)
    }

    fn write(&self, parts: &[AnswerPart]) -> Option<Vec<Bytes>> {
        let (mut transcript, mut calls, mut written) = (ChatTranscript::new("example-model"), 0, 0);
        let mut all = Vec::new();
        for part in parts {
            transcript = self.appended(transcript, part, &mut calls)?;
            let body = transcript.clone().without_done();
            all.push(body.slice(written..));
            written = body.len();
        }
        Some(all)
    }

    fn expressible(&self, usage: Usage) -> Usage {
        (self.usage)(usage)
    }
}

impl ChatCompletions {
    fn appended(
        &self,
        transcript: ChatTranscript,
        part: &AnswerPart,
        calls: &mut i64,
    ) -> Option<ChatTranscript> {
        let mut index = || {
            *calls += 1;
            *calls - 1
        };
        Some(match part {
            AnswerPart::Text(text) => transcript.text(text),
            AnswerPart::Reasoning(text) if self.reasoning => transcript.reasoning(text),
            AnswerPart::Refusal(text) if self.refusals => transcript.refusal(text),
            AnswerPart::Call { id, name, arguments } => transcript.tool_call(index(), id, name, arguments),
            AnswerPart::CutCall { id, name, arguments } => {
                transcript.tool_call(index(), id, name, &[*arguments])
            }
            AnswerPart::Usage(usage) => transcript.raw(usage_chunk(usage)),
            AnswerPart::Finish(reason) => transcript.finish(word(reason)?),
            AnswerPart::End => transcript.raw("[DONE]"),
            AnswerPart::Failure(message) => {
                transcript.raw(json!({ "error": { "message": message, "type": "server_error" } }))
            }
            AnswerPart::Unknown => {
                transcript.raw(json!({ "object": "chat.completion.later", "later": true }))
            }
            AnswerPart::Malformed => transcript.raw("{\"choices\":}"),
            _ => return None,
        })
    }
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
    let (input, output) = (usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0));
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "example-model",
        "choices": [],
        "usage": {
            "prompt_tokens": input,
            "completion_tokens": output,
            "total_tokens": input + output,
            "prompt_tokens_details": { "cached_tokens": usage.cached_input_tokens },
            "completion_tokens_details": { "reasoning_tokens": usage.reasoning_tokens },
        },
    })
}
