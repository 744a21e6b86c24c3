//! The Responses API passes the conformance suite for providers.

use std::sync::Arc;

use advisor_conformance::provider::{AnswerPart, WireFamily};
use advisor_core::{ChatModel, FinishReason, Usage};
use bytes::Bytes;
use provider_openai::OpenAiResponsesModel;
use provider_openai::backoff::Backoff;
use serde_json::{Value, json};

use crate::responses::framed;

advisor_conformance::provider_conformance!(Responses);

/// A server of the Responses API as OpenAI's.
struct Responses;

impl WireFamily for Responses {
    fn model(&self, url: &str) -> Arc<dyn ChatModel> {
        let model = OpenAiResponsesModel::new("example-model").with_base_url(format!("{url}/v1"));
        Arc::new(model.with_api_key("canary-key-0123456789").with_retries(Backoff::none()))
    }

    fn write(&self, parts: &[AnswerPart]) -> Option<Vec<Bytes>> {
        let mut writer = Writer::default();
        parts.iter().map(|part| writer.part(part)).collect()
    }
}

/// The kinds of items whose pieces stream.
#[derive(Clone, Copy, PartialEq)]
enum Streaming {
    Text,
    Refusal,
    Reasoning,
}

#[derive(Default)]
struct Writer {
    begun: bool,
    /// The number of items.
    items: i64,
    /// The open item, and its text so far.
    open: Option<(Streaming, String)>,
    usage: Option<Usage>,
    finished: bool,
}

impl Writer {
    fn part(&mut self, part: &AnswerPart) -> Option<Bytes> {
        let mut events = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            events.push(json!({"type": "response.created", "response": {"id": "resp_1", "model": "example-model", "status": "in_progress"}}));
        }
        match part {
            AnswerPart::Text(text) => self.piece(Streaming::Text, text, &mut events),
            AnswerPart::Refusal(text) => self.piece(Streaming::Refusal, text, &mut events),
            AnswerPart::Reasoning(text) => self.piece(Streaming::Reasoning, text, &mut events),
            AnswerPart::Call { id, name, arguments } => {
                self.end_open(&mut events);
                self.call(id, name, arguments, &mut events);
                let item = json!({"type": "function_call", "id": format!("fc_{}", self.items), "call_id": id, "name": name,
                    "arguments": arguments.concat(), "status": "completed"});
                events.push(
                    json!({"type": "response.output_item.done", "output_index": self.items, "item": item}),
                );
                self.items += 1;
            }
            AnswerPart::CutCall { id, name, arguments } => {
                self.end_open(&mut events);
                self.call(id, name, &[*arguments], &mut events);
            }
            // The last event has the counts.
            AnswerPart::Usage(_) if self.finished => return None,
            AnswerPart::Usage(usage) => self.usage = Some(*usage),
            AnswerPart::Finish(reason) => {
                self.end_open(&mut events);
                events.push(self.end(reason)?);
            }
            AnswerPart::End => {}
            AnswerPart::Failure(message) => {
                events.push(json!({"type": "error", "code": "server_error", "message": message}))
            }
            AnswerPart::Unknown => events.push(json!({"type": "response.later", "later": true})),
            AnswerPart::Malformed => {
                return Some([framed(&events), "data: {\"type\":}\n\n".to_owned()].concat().into());
            }
            _ => return None,
        }
        Some(framed(&events).into())
    }

    fn piece(&mut self, kind: Streaming, text: &str, events: &mut Vec<Value>) {
        if self.open.as_ref().is_none_or(|(open, _)| *open != kind) {
            self.end_open(events);
            let item = match kind {
                Streaming::Reasoning => {
                    json!({"type": "reasoning", "id": format!("rs_{}", self.items), "summary": []})
                }
                _ => {
                    json!({"type": "message", "id": format!("msg_{}", self.items), "role": "assistant", "content": []})
                }
            };
            events.push(
                json!({"type": "response.output_item.added", "output_index": self.items, "item": item}),
            );
            self.open = Some((kind, String::new()));
        }
        let (name, place) = match kind {
            Streaming::Text => ("response.output_text.delta", "content_index"),
            Streaming::Refusal => ("response.refusal.delta", "content_index"),
            Streaming::Reasoning => ("response.reasoning_summary_text.delta", "summary_index"),
        };
        events.push(json!({"type": name, "output_index": self.items, place: 0, "delta": text}));
        if let Some((_, all)) = &mut self.open {
            all.push_str(text);
        }
    }

    fn end_open(&mut self, events: &mut Vec<Value>) {
        let Some((kind, text)) = self.open.take() else { return };
        let item = match kind {
            Streaming::Text => {
                json!({"type": "message", "content": [{"type": "output_text", "text": text, "annotations": []}]})
            }
            Streaming::Refusal => {
                json!({"type": "message", "content": [{"type": "refusal", "refusal": text}]})
            }
            Streaming::Reasoning => {
                json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]})
            }
        };
        events.push(json!({"type": "response.output_item.done", "output_index": self.items, "item": item}));
        self.items += 1;
    }

    fn call(&self, id: &str, name: &str, arguments: &[&str], events: &mut Vec<Value>) {
        let item_id = format!("fc_{}", self.items);
        let item =
            json!({"type": "function_call", "id": item_id, "call_id": id, "name": name, "arguments": ""});
        events.push(json!({"type": "response.output_item.added", "output_index": self.items, "item": item}));
        for piece in arguments {
            events.push(json!({"type": "response.function_call_arguments.delta", "item_id": item_id,
                "output_index": self.items, "delta": piece}));
        }
    }

    fn end(&mut self, reason: &FinishReason) -> Option<Value> {
        self.finished = true;
        let (status, details) = match reason {
            FinishReason::Stop | FinishReason::ToolCalls => ("completed", Value::Null),
            FinishReason::Length => ("incomplete", json!({"reason": "max_output_tokens"})),
            _ => return None,
        };
        let usage = self.usage.map(|usage| {
            json!({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
                "input_tokens_details": {"cached_tokens": usage.cached_input_tokens},
                "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens}})
        });
        let response =
            json!({"id": "resp_1", "status": status, "incomplete_details": details, "usage": usage});
        Some(json!({"type": format!("response.{status}"), "response": response}))
    }
}
