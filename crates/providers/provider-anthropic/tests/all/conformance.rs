//! The Messages API passes the conformance suite for providers.

use std::sync::Arc;

use advisor_conformance::provider::{AnswerPart, WireFamily};
use advisor_core::{ChatModel, FinishReason, Usage};
use bytes::Bytes;
use provider_anthropic::AnthropicModel;
use provider_anthropic::backoff::Backoff;
use serde_json::{Value, json};

advisor_conformance::provider_conformance!(MessagesApi);

/// A server of the Messages API as Anthropic's.
struct MessagesApi;

impl WireFamily for MessagesApi {
    fn model(&self, url: &str) -> Arc<dyn ChatModel> {
        let model = AnthropicModel::new("example-model").with_base_url(url);
        Arc::new(model.with_api_key("canary-key-0123456789").with_retries(Backoff::none()))
    }

    fn write(&self, parts: &[AnswerPart]) -> Option<Vec<Bytes>> {
        let mut transcript = Transcript::default();
        let start = json!({ "id": "msg_1", "model": "example-model", "content": [] });
        transcript.push(json!({ "type": "message_start", "message": start }));
        let written = |part| transcript.append(part).then(|| std::mem::take(&mut transcript.body).into());
        parts.iter().map(written).collect()
    }

    fn failure(&self, message: &str) -> Value {
        json!({ "type": "error", "error": { "type": "some_error", "message": message } })
    }
}

/// The events of an answer.
#[derive(Default)]
struct Transcript {
    body: String,
    /// The type of the block that is open.
    open: Option<&'static str>,
    /// The number of the next block.
    next: i64,
}

impl Transcript {
    /// Appends a part of the answer. Returns false if the API cannot express it.
    fn append(&mut self, part: &AnswerPart) -> bool {
        match part {
            AnswerPart::Text(text) => self.text("text", "text_delta", text),
            AnswerPart::Reasoning(text) => self.text("thinking", "thinking_delta", text),
            AnswerPart::Call { id, name, arguments } => self.call(id, name, arguments),
            AnswerPart::CutCall { id, name, arguments } => self.call(id, name, &[*arguments]),
            AnswerPart::Usage(usage) => {
                self.push(json!({ "type": "message_delta", "delta": {}, "usage": counts(usage) }));
            }
            AnswerPart::Finish(reason) => {
                self.close();
                let Some(word) = word(reason) else { return false };
                self.push(json!({ "type": "message_delta", "delta": { "stop_reason": word } }));
            }
            AnswerPart::End => self.push(json!({ "type": "message_stop" })),
            AnswerPart::Failure(message) => {
                self.push(json!({ "type": "error", "error": { "type": "api_error", "message": message } }));
            }
            AnswerPart::Unknown => self.push(json!({ "type": "later_event", "later": true })),
            AnswerPart::Malformed => self.body.push_str("event: ping\ndata: {\"type\":}\n\n"),
            _ => return false,
        }
        true
    }

    fn text(&mut self, block: &'static str, delta: &str, text: &str) {
        if self.open != Some(block) {
            self.begin(block, &json!({ "type": block, block: "" }));
        }
        self.delta(&json!({ "type": delta, block: text }));
    }

    fn call(&mut self, id: &str, name: &str, arguments: &[&str]) {
        let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        self.begin("tool_use", &block);
        for piece in arguments {
            self.delta(&json!({ "type": "input_json_delta", "partial_json": piece }));
        }
    }

    fn begin(&mut self, kind: &'static str, block: &Value) {
        self.close();
        self.push(json!({ "type": "content_block_start", "index": self.next, "content_block": block }));
        self.open = Some(kind);
        self.next += 1;
    }

    fn delta(&mut self, delta: &Value) {
        self.push(json!({ "type": "content_block_delta", "index": self.next - 1, "delta": delta }));
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.push(json!({ "type": "content_block_stop", "index": self.next - 1 }));
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "the events are made for it")]
    fn push(&mut self, event: Value) {
        let name = event.get("type").and_then(Value::as_str).unwrap_or_default();
        self.body.push_str(&format!("event: {name}\ndata: {event}\n\n"));
    }
}

fn word(reason: &FinishReason) -> Option<&'static str> {
    match reason {
        FinishReason::Stop => Some("end_turn"),
        FinishReason::Length => Some("max_tokens"),
        FinishReason::ToolCalls => Some("tool_use"),
        _ => None,
    }
}

/// Returns token counts as the API writes them: cached tokens are no input.
fn counts(usage: &Usage) -> Value {
    let cached = usage.cached_input_tokens.unwrap_or_default();
    json!({
        "input_tokens": usage.input_tokens.map(|input| input - cached),
        "cache_read_input_tokens": usage.cached_input_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": { "thinking_tokens": usage.reasoning_tokens },
    })
}
