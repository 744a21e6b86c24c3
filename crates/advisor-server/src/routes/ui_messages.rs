use advisor_core::{Message, TurnId};
use advisor_sse::{Frames, UiMessages, UiProfile};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::content::{Content, SentMessage, SentResult};
use super::ask::new_input::OpenCalls;
use super::ask::{Question, on_disconnect};
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
    parts: Vec<Value>,
}

pub(super) fn operation() -> Operation {
    let part = json!({"type": "text", "text": "How is the weather?"});
    let message = json!({"id": "u1", "role": "user", "parts": [part]});
    Operation::turn(
        "ui",
        "A turn for `useChat` of the AI SDK. By default, it continues if the client disconnects.",
    )
    .with_parameters(&["UiProfile", "OnDisconnect"])
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
    let profile = profile(&headers)?;
    let (question, answer) = question(&server, &user, body).await?;
    let turn = question.start(&server, on_disconnect(&headers)?).await?;
    let encoder = UiMessages::new(answer).with_profile(profile);
    Ok(question.named(streamed(turn, encoder, Frames::new(), user.request()).await?))
}

/// Returns the question of a request, and the id of its answer.
async fn question(server: &ChatServer, user: &User, body: Body) -> Result<(Question, String), Refusal> {
    let last = body.messages.into_iter().next_back();
    let last = last.ok_or_else(|| Refusal::bad_request("there is no message"))?;
    if last.role == "assistant" && body.trigger == Trigger::SubmitMessage {
        let input = results(server, user, &body.id, last.parts).await?;
        // The client extends its message of the calls.
        return Ok((Question::new(user, Some(&body.id), None, input)?, last.id));
    }
    if last.role != "user" {
        return Err(Refusal::bad_request("the last message is not one of the user"));
    }
    let input = vec![Content::Parts(last.parts).read()?];
    let replaced = match (body.trigger, body.message_id.as_deref()) {
        // The id of an answer has that of its turn; the id of a user's message is that of its turn.
        (Trigger::RegenerateMessage, id) => {
            Some(id.and_then(|id| id.strip_prefix(ANSWER)).unwrap_or(&last.id))
        }
        (Trigger::SubmitMessage, id) => id,
    };
    let question = match replaced {
        Some(turn) => Question::new(user, Some(&body.id), None, input)?.replacing(server, turn).await?,
        None => {
            // A message that is sent again has the same id, so it is the same turn.
            let turn = Some(last.id.as_str()).filter(|id| !id.is_empty());
            Question::new(user, Some(&body.id), turn, input)?
        }
    };
    let answer = answer_id(&question.turn);
    Ok((question, answer))
}

/// Returns the results in a message of the assistant that the conversation waits for. The others are history.
async fn results(
    server: &ChatServer,
    user: &User,
    conversation: &str,
    parts: Vec<Value>,
) -> Result<Vec<Message>, Refusal> {
    let open = OpenCalls::of(server, &user.conversation(conversation)?).await?;
    let results: Vec<_> = parts.into_iter().filter_map(result).filter(|result| open.has(result)).collect();
    if results.is_empty() {
        let message =
            "the last message is not one of the user, and has no result that the conversation waits for";
        return Err(Refusal::bad_request(message));
    }
    open.new_input(results.into_iter().map(SentMessage::Result).collect())
}

fn result(mut part: Value) -> Option<SentResult> {
    let call_id = part.get("toolCallId")?.as_str()?.to_owned();
    let (field, is_error) = match part.get("state")?.as_str()? {
        "output-available" => ("output", false),
        "output-error" => ("errorText", true),
        _ => return None,
    };
    let content = match part.get_mut(field)?.take() {
        Value::String(text) => text,
        value => value.to_string(),
    };
    Some(SentResult { call_id, content: Content::Text(content), is_error })
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
    let (key, profile) = (user.conversation(&id?)?, profile(&headers)?);
    let running = server.turns().running(&key).await?;
    let Some(id) = running else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let turn = server.turns().join(&(key, id.clone())).await?;
    let Some(turn) = turn else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let encoder = UiMessages::new(answer_id(&id)).with_profile(profile);
    streamed(turn, encoder, Frames::new(), user.request()).await
}

/// The id of an answer is made of the turn's, so that it is the same after a resumption.
fn answer_id(turn: &TurnId) -> String {
    format!("{ANSWER}{turn}")
}

/// Returns the profile of the client's version of the AI SDK.
fn profile(headers: &HeaderMap) -> Result<UiProfile, Refusal> {
    match headers.get("x-ui-profile").map(HeaderValue::as_bytes) {
        None | Some(b"v5") => Ok(UiProfile::V5),
        Some(b"v6") => Ok(UiProfile::V6),
        Some(b"v7") => Ok(UiProfile::V7),
        Some(_) => Err(Refusal::bad_request("`x-ui-profile` is `v5`, `v6` or `v7`")),
    }
}
