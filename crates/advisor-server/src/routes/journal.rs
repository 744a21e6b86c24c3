//! The route that shows the journal of a turn.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};

use super::input::{NoParameters, Parameters};
use super::user::User;
use crate::ChatServer;
use crate::refusal::Refusal;

/// Returns the journal of a turn so far.
pub(super) async fn read(
    State(server): State<ChatServer>,
    user: User,
    _: Parameters<NoParameters>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, Refusal> {
    let Path((conversation, turn)) = path?;
    let key = user.conversation(&conversation)?;
    let turn = advisor_core::TurnId::new(&turn).map_err(|error| Refusal::bad_request(error.to_string()))?;
    let inspector =
        server.inspector().ok_or_else(|| Refusal::not_found("this server records no journals"))?;
    let journal = inspector.find(&(key, turn));
    let journal = journal.ok_or_else(|| Refusal::not_found("the journal of this turn is not kept"))?;
    Ok(Json(journal.written()).into_response())
}
