//! Gemini's API passes the conformance suite for providers.

use std::sync::Arc;

use advisor_conformance::provider::{AnswerPart, WireFamily};
use advisor_core::{ChatModel, FinishReason, Usage};
use bytes::Bytes;
use provider_gemini::GeminiModel;
use provider_gemini::backoff::Backoff;
use serde_json::{Value, json};

/// A server of `streamGenerateContent` as Google's.
struct Gemini;

advisor_conformance::provider_conformance!(Gemini);

impl WireFamily for Gemini {
    fn model(&self, url: &str) -> Arc<dyn ChatModel> {
        let model = GeminiModel::new("gemini-3-pro").with_base_url(url);
        Arc::new(model.with_api_key("canary-key-0123456789").with_retries(Backoff::none()))
    }

    fn write(&self, parts: &[AnswerPart]) -> Option<Vec<Bytes>> {
        parts.iter().map(events).collect()
    }

    fn failure(&self, message: &str) -> Value {
        json!([{ "error": { "code": 0, "message": message, "status": "UNKNOWN" } }])
    }

    fn expressible(&self, usage: Usage) -> Usage {
        let mut expressible = usage;
        expressible.cache_write_tokens = None;
        expressible
    }
}

fn events(part: &AnswerPart) -> Option<Bytes> {
    let content = |part: Value| {
        vec![json!({"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}]})]
    };
    let call = |call: Value| content(json!({ "functionCall": call }));
    let events = match part {
        AnswerPart::Text(text) => content(json!({ "text": text })),
        AnswerPart::Reasoning(text) => content(json!({ "text": text, "thought": true })),
        AnswerPart::Call { id, name, arguments } => {
            let args: Value = serde_json::from_str(&arguments.concat())
                .ok()
                .or_else(|| arguments.is_empty().then(|| json!({})))?;
            call(json!({ "id": id, "name": name, "args": args }))
        }
        AnswerPart::CutCall { id, name, arguments } => {
            let (key, text) = arguments.strip_prefix("{\"")?.split_once("\":\"")?;
            let piece = json!({ "jsonPath": format!("$.{key}"), "stringValue": text, "willContinue": true });
            let begin = call(json!({ "id": id, "name": name, "willContinue": true }));
            let more = call(json!({ "partialArgs": [piece], "willContinue": true }));
            begin.into_iter().chain(more).collect()
        }
        AnswerPart::Usage(usage) => {
            let thoughts = usage.reasoning_tokens.unwrap_or_default();
            vec![json!({ "usageMetadata": {
                "promptTokenCount": usage.input_tokens,
                "candidatesTokenCount": usage.output_tokens.map(|count| count.saturating_sub(thoughts)),
                "thoughtsTokenCount": usage.reasoning_tokens,
                "cachedContentTokenCount": usage.cached_input_tokens,
                "totalTokenCount": usage.total_tokens,
            } })]
        }
        AnswerPart::Finish(reason) => {
            let word = match reason {
                FinishReason::Stop | FinishReason::ToolCalls => "STOP",
                FinishReason::Length => "MAX_TOKENS",
                _ => return None,
            };
            vec![json!({ "candidates": [{ "finishReason": word, "index": 0 }] })]
        }
        AnswerPart::End => Vec::new(),
        AnswerPart::Failure(message) => {
            vec![json!({ "error": { "code": 500, "message": message, "status": "INTERNAL" } })]
        }
        AnswerPart::Unknown => vec![json!({ "somethingLater": { "a": [1] } })],
        AnswerPart::Malformed => return Some("data: {\"candidates\":}\r\n\r\n".into()),
        _ => return None,
    };
    Some(events.iter().map(|event| format!("data: {event}\r\n\r\n")).collect::<String>().into())
}
