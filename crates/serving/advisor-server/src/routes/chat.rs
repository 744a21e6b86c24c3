//! The routes of the server's own protocols: a new turn as events or as chunks, and joining one that runs.

use advisor_core::{Decision, Message, TurnId};
use advisor_sse::{EventId, Frames, JsonLines};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::ChatServer;
use crate::refusal::Refusal;
use crate::routes::approvals::decisions;
use crate::routes::ask::Question;
use crate::routes::ask::headers::{header, on_disconnect};
use crate::routes::input::{JsonBody, Parameters, User};
use crate::routes::page::events::Wanted;
use crate::turns::body::streamed;
use crate::turns::run::OnDisconnect;

/// The body of `POST /api/chat` and `/api/chunks`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Body {
    /// The message of the user. It may be absent beside decisions.
    message: Option<String>,
    conversation: Option<String>,
    /// The id of the turn, for a repeated request.
    turn: Option<String>,
    /// The id of an earlier turn that this one replaces: edited, or answered again.
    replaces: Option<String>,
    /// The decisions about all calls that wait, if the server takes them.
    decisions: Option<Vec<Decision>>,
}

/// Streams a turn as events of the chat page.
pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    Parameters(wanted): Parameters<Wanted>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    let question = question(&server, &user, &headers, body).await?;
    let turn = question.start(&server, on_disconnect(&headers)?).await?;
    let (encoder, frames) = (wanted.view.encoder(), Frames::new().with_ids(question.turn.as_str()));
    Ok(question.named(streamed(turn, encoder, frames, &user.request).await?))
}

async fn question(
    server: &ChatServer,
    user: &User,
    headers: &HeaderMap,
    body: Body,
) -> Result<Question, Refusal> {
    let turn = header(headers, "idempotency-key")?.or(body.turn.as_deref());
    let (conversation, input) =
        (body.conversation.as_deref(), body.message.map(Message::user).into_iter().collect());
    let question = match decisions(server, body.decisions)? {
        None => Question::new(user, conversation, turn, input)?,
        Some(_) if body.replaces.is_some() => {
            return Err(Refusal::bad_request("a turn with decisions replaces no other one"));
        }
        decisions => Question::resuming(user, conversation, turn, input, decisions)?,
    };
    match &body.replaces {
        Some(turn) => {
            let replacing = question.replacing(server, turn).await?;
            replacing.ok_or_else(|| Refusal::not_found("the conversation has no such turn"))
        }
        None => Ok(question),
    }
}

/// Joins the running turn of a conversation, behind `Last-Event-ID`. Without one there is no content. The view is that of
/// the request that started the turn, so that events have the same ids.
pub(super) async fn resume(
    State(server): State<ChatServer>,
    user: User,
    id: Result<Path<String>, PathRejection>,
    Parameters(wanted): Parameters<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let key = user.conversation(&id?)?;
    let turn = match header(&headers, "x-turn-id")? {
        Some(turn) => Some(TurnId::new(turn).map_err(Refusal::invalid)?),
        None => server.turns.running(&key).await?,
    };
    let last_event = header(&headers, "last-event-id")?;
    let Some(turn) = turn else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let frames = frames(last_event, &turn)?;
    let turn = server.turns.join(&(key, turn)).await?;
    let Some(turn) = turn else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    streamed(turn, wanted.view.encoder(), frames, &user.request).await
}

/// Returns frames of a turn, behind the last one that the client has received. An event of another turn says nothing about
/// this one, which is read from its beginning.
fn frames(last_event: Option<&str>, turn: &TurnId) -> Result<Frames, Refusal> {
    let frames = Frames::new().with_ids(turn.as_str());
    let Some(last) = last_event else { return Ok(frames) };
    let (of, id) = match last.rsplit_once(':') {
        Some((of, id)) => (Some(of), id),
        None => (None, last),
    };
    let id = EventId::parse(id).ok_or_else(|| {
        Refusal::bad_request("an event id is two numbers with a dot between them, such as `12.0`")
    })?;
    let is_read = of.is_none_or(|of| of == turn.as_str());
    Ok(if is_read { frames.after(id) } else { frames })
}

/// Streams a turn as chunks in their own JSON form.
pub(super) async fn ask_chunks(
    State(server): State<ChatServer>,
    user: User,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    let question = question(&server, &user, &headers, body).await?;
    let turn = question.start(&server, OnDisconnect::Stop).await?;
    Ok(question.named(streamed(turn, JsonLines, Frames::new(), &user.request).await?))
}
