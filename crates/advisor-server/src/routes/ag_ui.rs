use advisor_core::Role;
use advisor_sse::{AgUi, Frames};
use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::content::{Content, SentMessage};
use super::ask::{OnDisconnect, Question, new_input};
use super::input::JsonBody;
use super::openai_chat::without_tools;
use super::openapi::operation::Operation;
use super::user::User;
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::turns::body::streamed;

/// The input of a run. Its thread is the conversation, and the run is the turn. State, context and forwarded properties
/// are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgUiBody")]
pub(super) struct Body {
    thread_id: String,
    run_id: String,
    #[serde(default)]
    messages: Vec<AgMessage>,
    #[serde(default)]
    tools: Vec<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct AgMessage {
    role: String,
    #[serde(default)]
    content: Value,
}

impl AgMessage {
    /// Reasoning and activities are the client's own notes.
    fn read(self) -> Option<SentMessage> {
        let role = match self.role.as_str() {
            "user" => Role::User,
            "assistant" | "tool" => Role::Assistant,
            "system" | "developer" => Role::System,
            _ => return None,
        };
        let content = match self.content {
            Value::String(text) => Content::Text(text),
            Value::Array(parts) => Content::Parts(parts),
            _ => Content::Nothing,
        };
        Some(SentMessage { role, content })
    }
}

pub(super) fn operation() -> Operation {
    let message = json!({"id": "u1", "role": "user", "content": "How is the weather?"});
    Operation::turn("agUi", "A turn for AG-UI")
        .with_body::<Body>(json!({"threadId": "c1", "runId": "r1", "messages": [message]}))
        .with_turn("text/event-stream")
}

pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    without_tools(&body.tools)?;
    let messages = body.messages.into_iter().filter_map(AgMessage::read).collect();
    let input = new_input(messages, true)?;
    let question = Question::new(&user, Some(&body.thread_id), Some(&body.run_id), input)?;
    let turn = question.start(&server, OnDisconnect::Stop).await?;
    let encoder = AgUi::new(body.thread_id, body.run_id);
    Ok(question.named(streamed(turn, encoder, Frames::new(), user.request()).await?))
}
