//! The route with which the AI SDK joins the running turn of a chat.

use advisor_sse::Frames;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::super::openapi::operation::Operation;
use super::super::user::User;
use super::{answer_id, encoder, profile};
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::turns::body::streamed;

pub(in crate::routes) fn operation() -> Operation {
    Operation::turn("resumeUi", "Joins the running turn of a chat from its beginning")
        .with_parameters(&["Conversation", "UiProfile"])
        .with_text("text/event-stream")
        .with_no_content()
}

/// Joins the running turn of a chat from its beginning. Without one there is no content.
pub(in crate::routes) async fn resume(
    State(server): State<ChatServer>,
    user: User,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let (key, profile) = (user.conversation(&id?)?, profile(&headers)?);
    let running = server.turns().running(&key).await?;
    let Some(id) = running else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let turn = server.turns().join(&(key.clone(), id.clone())).await?;
    let Some(turn) = turn else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let answer = answer_id(&id);
    let encoder = encoder(&server, &user, (key, id), answer).with_profile(profile);
    streamed(turn, encoder, Frames::new(), user.request()).await
}
