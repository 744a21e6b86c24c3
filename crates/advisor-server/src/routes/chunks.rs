//! The route that streams chunks in their own JSON form.

use advisor_core::Message;
use advisor_sse::{Frames, JsonLines};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;

use super::approvals::decisions::{SentDecision, decisions};
use super::ask::Question;
use super::ask::headers::header;
use super::input::{JsonBody, NoParameters, Parameters};
use super::user::User;
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::turns::body::streamed;
use crate::turns::on_disconnect::OnDisconnect;

/// The body of `POST /api/chunks`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Body {
    /// The message of the user. It may be absent beside decisions.
    message: Option<String>,
    conversation: Option<String>,
    turn: Option<String>,
    /// The decisions about all calls that wait, if the server takes them.
    decisions: Option<Vec<SentDecision>>,
}

pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    _: Parameters<NoParameters>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    let turn = header(&headers, "idempotency-key")?.or(body.turn.as_deref());
    let (conversation, input) =
        (body.conversation.as_deref(), body.message.map(Message::user).into_iter().collect());
    let question = match decisions(&server, body.decisions)? {
        None => Question::new(&user, conversation, turn, input)?,
        decisions => Question::resuming(&user, conversation, turn, input, decisions)?,
    };
    let turn = question.start(&server, OnDisconnect::Stop).await?;
    Ok(question.named(streamed(turn, JsonLines::new(), Frames::new(), user.request()).await?))
}
