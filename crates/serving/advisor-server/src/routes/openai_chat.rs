//! The route of OpenAI's Chat Completions API.

use advisor_sse::{Frame, OpenAiChat};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::settings::Api;
use super::input::{JsonBody, User};
use super::v1::{ApiFields, ChatMessage, answered, info, listed_question};
use crate::ChatServer;
use crate::refusal::Refusal;

/// A request of Chat Completions.
#[derive(Debug, Deserialize)]
pub(super) struct Body {
    messages: Vec<ChatMessage>,
    #[serde(default)]
    stream_options: Value,
    #[serde(flatten)]
    api: ApiFields,
}

pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    let stream = body.api.stream;
    let user = body.api.sender(&server, user, Api::ChatCompletions)?;
    let messages = body.messages.into_iter().map(ChatMessage::read).collect();
    let question = listed_question(&server, &user, &headers, messages).await?;
    let encoder = OpenAiChat::new(info(&server, format!("chatcmpl-{}", question.turn)));
    let has_usage = !stream || body.stream_options.get("include_usage") == Some(&Value::Bool(true));
    let encoder = if has_usage { encoder.with_usage() } else { encoder };
    answered(&server, &user, &question, stream, encoder, completion).await
}

/// Returns the answer in one piece, joined from the chunks of its stream.
fn completion(frames: &[Frame]) -> Value {
    let chunks: Vec<Value> = frames.iter().filter_map(Frame::json).collect();
    let joined = |place: &str| -> String {
        chunks.iter().filter_map(|chunk| chunk.pointer(place)?.as_str()).collect()
    };
    let some = |text: String| if text.is_empty() { Value::Null } else { Value::String(text) };
    let calls = calls_of(&chunks);
    let mut message = json!({
        "role": "assistant",
        "content": some(joined("/choices/0/delta/content")),
        "refusal": some(joined("/choices/0/delta/refusal")),
    });
    let reasoning = joined("/choices/0/delta/reasoning_content");
    if let Some(fields) = message.as_object_mut() {
        let reasoning = (!reasoning.is_empty()).then(|| ("reasoning_content".into(), reasoning.into()));
        fields.extend(reasoning);
        fields.extend((!calls.is_empty()).then(|| ("tool_calls".into(), calls.into())));
        let annotations = chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/annotations/0"));
        let annotations: Vec<_> = annotations.cloned().collect();
        fields.extend((!annotations.is_empty()).then(|| ("annotations".into(), annotations.into())));
    }
    let of_last = |place: &str| {
        chunks.iter().rev().find_map(|chunk| chunk.pointer(place).filter(|value| !value.is_null()))
    };
    let of_first = |field: &str| chunks.first().and_then(|chunk| chunk.get(field)).cloned();
    let choice = json!({
        "index": 0,
        "message": message,
        "logprobs": null,
        "finish_reason": of_last("/choices/0/finish_reason"),
    });
    json!({
        "id": of_first("id"),
        "object": "chat.completion",
        "created": of_first("created"),
        "model": of_first("model"),
        "choices": [choice],
        "usage": of_last("/usage"),
    })
}

/// Returns the calls, which come whole, without their places in the stream.
fn calls_of(chunks: &[Value]) -> Vec<Value> {
    let calls = chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/tool_calls/0").cloned());
    calls
        .map(|mut call| {
            call.as_object_mut().map(|fields| fields.remove("index"));
            call
        })
        .collect()
}
