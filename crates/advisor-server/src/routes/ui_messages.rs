use advisor_core::Message;
use advisor_sse::{Frames, UiMessages, UiProfile};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::ask::{OnDisconnect, Question, header};
use super::input::JsonBody;
use super::openapi::operation::Operation;
use super::user::User;
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::turns::body::streamed;

/// The prefix of the id of a turn in the id of its answer.
const ANSWER: &str = "answer-";

/// The request of the AI SDK's transport. Its id is that of the chat.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "UiBody")]
pub(super) struct Body {
    id: String,
    #[serde(default)]
    messages: Vec<UiMessage>,
    #[serde(default)]
    trigger: Trigger,
    /// The message that is edited, or whose answer is to be regenerated.
    #[serde(rename = "messageId")]
    message_id: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Trigger {
    #[default]
    SubmitMessage,
    RegenerateMessage,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UiMessage {
    #[serde(default)]
    id: String,
    role: String,
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Value>")]
    parts: Vec<UiPart>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum UiPart {
    Text {
        text: String,
    },
    #[serde(other)]
    Other,
}

impl UiMessage {
    fn text(&self) -> String {
        let text = |part: &UiPart| match part {
            UiPart::Text { text } => Some(text.clone()),
            UiPart::Other => None,
        };
        self.parts.iter().filter_map(text).collect()
    }
}

pub(super) fn operation() -> Operation {
    let part = json!({"type": "text", "text": "How is the weather?"});
    let message = json!({"id": "u1", "role": "user", "parts": [part]});
    Operation::turn("ui", "A turn for `useChat` of the AI SDK. It continues if the client disconnects.")
        .with_parameters(&["UiProfile"])
        .with_body::<Body>(json!({"id": "c1", "messages": [message], "trigger": "submit-message"}))
        .with_turn("text/event-stream")
        .with_errors(&[404])
}

pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    let last = body.messages.last().filter(|message| message.role == "user");
    let last = last.ok_or_else(|| Refusal::bad_request("the last message is not one of the user"))?;
    let input = vec![Message::user(last.text())];
    let replaced = match (body.trigger, body.message_id.as_deref()) {
        // The id of an answer has that of its turn; the id of a user's message is that of its turn.
        (Trigger::RegenerateMessage, id) => {
            Some(id.and_then(|id| id.strip_prefix(ANSWER)).unwrap_or(&last.id))
        }
        (Trigger::SubmitMessage, id) => id,
    };
    let question = match replaced {
        Some(turn) => Question::new(&user, Some(&body.id), None, input)?.replacing(&server, turn).await?,
        None => {
            // A message that is sent again has the same id, so it is the same turn.
            let turn = Some(last.id.as_str()).filter(|id| !id.is_empty());
            Question::new(&user, Some(&body.id), turn, input)?
        }
    };
    let turn = question.start(&server, OnDisconnect::Continue).await?;
    Ok(question.named(
        streamed(turn, encoder(question.turn.as_str(), &headers), Frames::new(), user.request()).await?,
    ))
}

pub(super) fn resume_operation() -> Operation {
    Operation::turn("resumeUi", "Joins the running turn of a chat from its beginning")
        .with_parameters(&["Conversation", "UiProfile"])
        .with_text("text/event-stream")
        .with_no_content()
        .with_errors(&[404])
}

/// Joins the running turn of a chat from its beginning. Without one there is no content.
pub(super) async fn resume(
    State(server): State<ChatServer>,
    user: User,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let key = user.conversation(&id?)?;
    let running = server.turns().running(&key).await?;
    let Some(id) = running else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let turn = server.turns().join(&(key, id.clone())).await?;
    let Some(turn) = turn else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    streamed(turn, encoder(id.as_str(), &headers), Frames::new(), user.request()).await
}

/// The message id is made of the turn's, so that it is the same after a resumption.
fn encoder(turn: &str, headers: &HeaderMap) -> UiMessages {
    let profile = match header(headers, "x-ui-profile") {
        Some("v6") => UiProfile::V6,
        Some("v7") => UiProfile::V7,
        _ => UiProfile::V5,
    };
    UiMessages::new(format!("{ANSWER}{turn}")).with_profile(profile)
}
