//! The model of the Responses API against a server.

mod conformance;
mod conversation;
mod failures;
mod recordings;

use advisor_core::{ChatModel, ChatRequest, ChatResponse, Message, Result};
use advisor_testkit::{ReplayServer, answer_of};
use provider_openai::OpenAiResponsesModel;
use provider_openai::backoff::Backoff;
use serde_json::{Value, json};

/// A model at this server that asks once.
fn model(server: &ReplayServer) -> OpenAiResponsesModel {
    OpenAiResponsesModel::new("m").with_base_url(format!("{}/v1", server.url())).with_retries(Backoff::none())
}

fn request() -> ChatRequest {
    ChatRequest::new(Message::user("Hello"))
}

/// Asks and reads to the end.
async fn call_with(model: &impl ChatModel, request: ChatRequest) -> Result<ChatResponse> {
    answer_of(model, request).await
}

/// Frames events as OpenAI does: the name of an event is its type.
fn framed(events: &[Value]) -> String {
    let frame =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"));
    events.iter().map(frame).collect()
}

fn text(index: i64, delta: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": delta})
}

fn done(index: i64, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": []}})
}

fn hello() -> String {
    framed(&[text(0, "Hello"), text(0, " there"), completed()])
}
