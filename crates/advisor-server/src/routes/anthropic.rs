//! The route of Anthropic's Messages API.

use advisor_sse::{AnthropicMessages, Frame, Frames};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::ask::Question;
use super::ask::content::{Content, SentMessage, SentResult};
use super::ask::headers::{header, server_tools};
use super::ask::new_input::new_input;
use super::ask::settings::{Api, Fields};
use super::input::{JsonBody, given, null_is_absent};
use super::openai_chat::{ChatMessage, info, listed, without_tools};
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::routes::ask::headers::Asking;
use crate::routes::input::User;
use crate::turns::body::{streamed, whole};
use crate::turns::run::OnDisconnect;

/// A request of Messages.
#[derive(Debug, Deserialize)]
pub(super) struct Body {
    /// The name of the chain, as the list of models has it.
    #[serde(default, deserialize_with = "null_is_absent")]
    model: String,
    messages: Vec<ChatMessage>,
    #[serde(default, deserialize_with = "null_is_absent")]
    stream: bool,
    system: Option<Value>,
    #[serde(default, deserialize_with = "null_is_absent")]
    metadata: Metadata,
    #[serde(default, deserialize_with = "null_is_absent")]
    tools: Vec<Value>,
    /// Settings. The README of the crate says which ones are honoured, refused or ignored.
    #[serde(flatten)]
    settings: Fields,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    /// The end user. It names the conversation only if the server is set so, and no header does.
    user_id: Option<String>,
}

pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    listed(&server, &body.model)?;
    let user = user.asking_for(Api::Messages.options(&server, &body.settings, &body.tools)?);
    without_tools(&server, &user, &body.tools)?;
    // A turn may take long.
    drop((body.settings, body.tools));
    let shows_tools = server_tools(&headers)?;
    if body.system.is_some_and(|system| system != "" && system != json!([])) {
        return Err(Refusal::bad_request("a system prompt is not accepted: the chain has its own"));
    }
    let conversation = header(&headers, "x-conversation-id")?;
    let conversation = conversation.or(server.conversation_of(given(body.metadata.user_id.as_ref())));
    let key = conversation.map(|id| user.conversation(id)).transpose()?;
    let messages = body.messages.into_iter().flat_map(read).collect();
    let asking = Asking::of(&headers)?;
    let input = new_input(&server, &user, key.as_ref(), asking, messages).await?;
    let question = Question::new(&user, conversation, asking.turn, input.messages)?.repeating(input.repeated);
    let encoder = AnthropicMessages::new(info(&server, format!("msg_{}", question.turn)));
    let encoder = if shows_tools { encoder.with_server_tools() } else { encoder };
    let turn = question.start(&server, OnDisconnect::Stop).await?;
    if body.stream {
        return Ok(question.named(streamed(turn, encoder, Frames::new(), user.request()).await?));
    }
    let stream = whole(turn, encoder, server.limits().whole_answer_bytes).await?;
    Ok(question.named(Json(message(&Frame::read_all(&stream))).into_response()))
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
