use advisor_sse::{AgUi, Frames};
use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::content::{SentMessage, SentResult};
use super::ask::new_input::new_input;
use super::ask::{OnDisconnect, Question};
use super::input::{JsonBody, null_is_absent};
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
    #[serde(default, deserialize_with = "null_is_absent")]
    #[schemars(with = "Option<Vec<Value>>")]
    tools: Vec<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AgMessage {
    role: String,
    #[serde(default)]
    content: Value,
    /// The call of a result.
    tool_call_id: Option<String>,
    /// The failure of a call.
    error: Option<String>,
    /// The calls of an answer.
    #[serde(default)]
    tool_calls: Value,
}

impl AgMessage {
    /// Reasoning and activities are the client's own notes.
    fn read(self) -> Option<SentMessage> {
        Some(match (self.role.as_str(), self.tool_call_id) {
            ("user", _) => SentMessage::User(self.content.into()),
            ("tool", Some(call_id)) => {
                let is_error = self.error.is_some();
                let content = self.error.map_or(self.content, Value::String);
                SentMessage::Result(SentResult { is_error, ..SentResult::new(call_id, content) })
            }
            ("assistant" | "tool", _) => {
                SentMessage::answer(self.tool_calls.as_array().map_or(&[], Vec::as_slice))
            }
            ("system" | "developer", _) => SentMessage::Instructions,
            _ => return None,
        })
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
    without_tools(&server, &user, &body.tools)?;
    let messages = body.messages.into_iter().filter_map(AgMessage::read).collect();
    let key = user.conversation(&body.thread_id)?;
    let input = new_input(&server, &user, Some(&key), Some(&body.run_id), messages).await?;
    let question = Question::new(&user, Some(&body.thread_id), Some(&body.run_id), input)?;
    let turn = question.start(&server, OnDisconnect::Stop).await?;
    let encoder = AgUi::new(body.thread_id, body.run_id);
    Ok(question.named(streamed(turn, encoder, Frames::new(), user.request()).await?))
}
