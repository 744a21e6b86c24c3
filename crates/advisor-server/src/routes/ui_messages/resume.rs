//! The route with which the AI SDK joins the running turn of a chat.

use advisor_sse::Frames;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::super::user::User;
use super::{answer_id, encoder};
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::turns::body::streamed;

/// Joins the running turn of a chat from its beginning. Without one there is no content.
pub(in crate::routes) async fn resume(
    State(server): State<ChatServer>,
    user: User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let key = user.conversation(&id?)?;
    let running = server.turns().running(&key).await?;
    let Some(id) = running else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let turn = server.turns().join(&(key.clone(), id.clone())).await?;
    let Some(turn) = turn else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let answer = answer_id(&id);
    let encoder = encoder(&server, &user, (key, id), answer);
    streamed(turn, encoder, Frames::new(), user.request()).await
}
