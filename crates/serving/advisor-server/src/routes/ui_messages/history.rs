//! The messages of a chat, for a page that is loaded again.

use std::num::{NonZeroU64, NonZeroUsize};

use advisor_core::TurnId;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::stored_turns::read_messages;
use super::{answer_id, encoder, encoder_without_approvals};
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::routes::conversations::stored_page::{StoredPage, shortened};
use crate::routes::input::Parameters;
use crate::routes::input::User;

/// The query of the messages of a chat.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct Query {
    limit: Option<NonZeroUsize>,
    /// The value of `before` of a later page.
    before: Option<NonZeroU64>,
}

/// Returns the messages of a chat for a page that is loaded again, oldest first: as a client has them after it has read the
/// streams of their turns. The answer of the turn that runs is not among them: its stream has it. Calls that wait for an approval ask for it, unless a turn
/// runs, which may run them.
pub(in crate::routes) async fn read(
    State(server): State<ChatServer>,
    user: User,
    id: Result<Path<String>, PathRejection>,
    Parameters(Query { limit, before }): Parameters<Query>,
) -> Result<Json<Value>, Refusal> {
    let key = user.conversation(&id?)?;
    let StoredPage { page, running, place } = StoredPage::read(&server, &key, before, limit).await?;
    let (is_idle, running) = (matches!(running, Ok(None)), running.ok().flatten());
    let (most, is_running) = (server.limits.page_bytes, running.clone());
    let written = place.work(move || {
        let page = shortened(page, most);
        let last = page.turns.last().map(|turn| turn.turn.clone());
        // The calls of an earlier turn are decided.
        let asks = |turn: &TurnId| last.as_ref() != Some(turn) || is_idle;
        let encoder_of = |turn: &TurnId| match asks(turn) {
            true => encoder(&server, &user, (key.clone(), turn.clone()), answer_id(turn)),
            false => encoder_without_approvals(turn, answer_id(turn)),
        };
        (read_messages(&page.turns, encoder_of, is_running.as_ref()), page.before)
    });
    let (messages, before) = written.await?;
    let (running, before) = (running.map(|turn| turn.to_string()), before.map(|tip| tip.to_string()));
    Ok(Json(json!({"messages": messages, "running": running, "before": before})))
}
