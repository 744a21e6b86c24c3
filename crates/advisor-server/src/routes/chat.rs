use advisor_core::Message;
use advisor_sse::{EventId, Frames};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::ask::{Question, header, on_disconnect};
use super::input::{JsonBody, Parameters};
use super::openapi::operation::Operation;
use super::user::User;
use super::view::WantedEvents;
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::turns::body::streamed;

/// The body of `POST /api/chat`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ChatBody")]
#[serde(deny_unknown_fields)]
pub(super) struct Body {
    message: String,
    conversation: Option<String>,
    /// The id of the turn, for a repeated request.
    turn: Option<String>,
    /// The id of an earlier turn that this one replaces: edited, or answered again.
    replaces: Option<String>,
}

pub(super) fn operation() -> Operation {
    Operation::turn(
        "chat",
        "A turn as events of the chat page. By default, it continues if the client disconnects.",
    )
    .with_parameters(&["IdempotencyKey", "EventView", "OnDisconnect"])
    .with_body::<Body>(json!({"message": "How is the weather?", "conversation": "c1"}))
    .with_turn("text/event-stream")
    .with_errors(&[404])
}

pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    Parameters(wanted): Parameters<WantedEvents>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    let input = vec![Message::user(body.message)];
    let turn = header(&headers, "idempotency-key").or(body.turn.as_deref());
    let mut question = Question::new(&user, body.conversation.as_deref(), turn, input)?;
    if let Some(turn) = &body.replaces {
        question = question.replacing(&server, turn).await?;
    }
    let turn = question.start(&server, on_disconnect(&headers)?).await?;
    let encoder = wanted.view.encoder();
    Ok(question.named(streamed(turn, encoder, Frames::new().with_ids(), user.request()).await?))
}

pub(super) fn resume_operation() -> Operation {
    Operation::turn("resume", "Joins a turn as events of the chat page")
        .with_parameters(&["Conversation", "EventView", "LastEventId", "Turn"])
        .with_text("text/event-stream")
        .with_no_content()
        .with_errors(&[404])
}

/// Joins the running turn of a conversation, behind `Last-Event-ID`. Without one there is no content. The view is that of
/// the request that started the turn, so that events have the same ids.
pub(super) async fn resume(
    State(server): State<ChatServer>,
    user: User,
    id: Result<Path<String>, PathRejection>,
    Parameters(wanted): Parameters<WantedEvents>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let key = user.conversation(&id?)?;
    let turn = match header(&headers, "x-turn-id") {
        Some(turn) => {
            let turn = advisor_core::TurnId::new(turn);
            Some(turn.map_err(|error| Refusal::bad_request(error.to_string()))?)
        }
        None => server.turns().running(&key).await?,
    };
    let Some(turn) = turn else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let turn = server.turns().join(&(key, turn)).await?;
    let Some(turn) = turn else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    streamed(turn, wanted.view.encoder(), frames(&headers)?, user.request()).await
}

/// Returns frames behind the last one that the client has received.
pub(super) fn frames(headers: &HeaderMap) -> Result<Frames, Refusal> {
    match header(headers, "last-event-id") {
        None => Ok(Frames::new().with_ids()),
        Some(id) => {
            let id: EventId = id
                .parse()
                .map_err(|error: advisor_sse::EventIdError| Refusal::bad_request(error.to_string()))?;
            Ok(Frames::new().after(id))
        }
    }
}
