//! The route of Anthropic's Messages API.

use advisor_sse::{AnthropicMessages, Frame};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::ask::content::{Content, SentMessage, SentResult};
use super::ask::settings::Api;
use super::input::{JsonBody, User};
use super::v1::{ApiFields, ChatMessage, answered, info, listed_question};
use crate::ChatServer;
use crate::refusal::Refusal;

/// A request of Messages.
#[derive(Debug, Deserialize)]
pub(super) struct Body {
    messages: Vec<ChatMessage>,
    system: Option<Value>,
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
    let user = body.api.sender(&server, user, Api::Messages)?;
    if body.system.is_some_and(|system| system != "" && system != json!([])) {
        return Err(Refusal::bad_request("a system prompt is not accepted: the chain has its own"));
    }
    let messages = body.messages.into_iter().flat_map(read).collect();
    let question = listed_question(&server, &user, &headers, messages).await?;
    let encoder = AnthropicMessages::new(info(&server, format!("msg_{}", question.turn)));
    answered(&server, &user, &question, stream, encoder, message).await
}

/// Reads a message, with the results in one of the user before it.
fn read(message: ChatMessage) -> Vec<SentMessage> {
    let (results, parts): (Vec<_>, Vec<_>) = match message.read() {
        SentMessage::User(Content::Parts(parts)) => {
            parts.into_iter().partition(|part| part.get("tool_use_id").is_some_and(Value::is_string))
        }
        message => return vec![message],
    };
    let said = (!parts.is_empty() || results.is_empty()).then_some(SentMessage::User(Content::Parts(parts)));
    results.into_iter().filter_map(result).chain(said).collect()
}

fn result(mut part: Value) -> Option<SentMessage> {
    let call_id = part.get("tool_use_id")?.as_str()?.to_owned();
    let is_error = part.get("is_error").and_then(Value::as_bool).unwrap_or_default();
    // A result may lack a content.
    let content = part.get_mut("content").map(Value::take).filter(|content| !content.is_null());
    let result = SentResult::new(call_id, content.unwrap_or_else(|| "".into()));
    Some(SentMessage::Result(SentResult { is_error, ..result }))
}

/// Returns the message in one piece, joined from the events of its stream.
fn message(frames: &[Frame]) -> Value {
    let mut message = Value::Null;
    let mut content: Vec<Value> = Vec::new();
    for event in frames.iter().filter_map(Frame::json) {
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => message = event.get("message").cloned().unwrap_or_default(),
            "content_block_start" => content.extend(event.get("content_block").cloned()),
            "content_block_delta" => {
                if let Some(block) = content.last_mut().and_then(Value::as_object_mut) {
                    extend(block, &event);
                }
            }
            "message_delta" => {
                if let Some(message) = message.as_object_mut() {
                    end(message, &event);
                }
            }
            _ => {}
        }
    }
    if let Some(fields) = message.as_object_mut() {
        fields.insert("content".into(), content.into());
    }
    message
}

/// Adds a piece to the block of content that it belongs to. Calls come whole.
fn extend(block: &mut Map<String, Value>, event: &Value) {
    let text = |place: &str| event.pointer(place).and_then(Value::as_str).unwrap_or_default();
    let (field, piece) = match text("/delta/type") {
        "text_delta" => ("text", text("/delta/text")),
        "thinking_delta" => ("thinking", text("/delta/thinking")),
        "citations_delta" => {
            let citation = event.pointer("/delta/citation").cloned().unwrap_or_default();
            if let Some(citations) = block.entry("citations").or_insert_with(|| json!([])).as_array_mut() {
                citations.push(citation);
            }
            return;
        }
        _ => {
            let input = serde_json::from_str(text("/delta/partial_json")).unwrap_or_else(|_| json!({}));
            block.insert("input".into(), input);
            return;
        }
    };
    match block.get_mut(field) {
        Some(Value::String(all)) => all.push_str(piece),
        _ => drop(block.insert(field.into(), piece.into())),
    }
}

/// Sets the reason of the end, and the usage.
fn end(message: &mut Map<String, Value>, event: &Value) {
    let at = |place: &str| event.pointer(place).cloned().unwrap_or_default();
    message.insert("stop_reason".into(), at("/delta/stop_reason"));
    message.insert("stop_sequence".into(), at("/delta/stop_sequence"));
    message.insert("usage".into(), at("/usage"));
}
