//! Whether the process runs, and whether turns can begin.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::ChatServer;
use crate::refusal::Refusal;

/// Answers while the process runs.
pub(in crate::routes) async fn alive() -> Response {
    Json(json!({"status": "alive"})).into_response()
}

/// Answers whether turns can begin: the server is not stopping, and the store answers.
pub(in crate::routes) async fn ready(State(server): State<ChatServer>) -> Result<Response, Refusal> {
    if server.turns.is_closed() {
        return Err(Refusal::stopping());
    }
    server.readiness.check(&server.memory).await?;
    Ok(Json(json!({"status": "ready"})).into_response())
}
