use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chat_memory_advisor::store::Page;
use serde_json::json;
use tokio::time::timeout;

use crate::ChatServer;
use crate::refusal::{Refusal, log_failure};

/// The time within which the store of a ready server answers.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Answers while the process runs.
pub(in crate::routes) async fn alive() -> Response {
    Json(json!({"status": "alive"})).into_response()
}

/// Answers whether turns can begin: the server is not stopping, and the store answers.
pub(in crate::routes) async fn ready(State(server): State<ChatServer>) -> Result<Response, Refusal> {
    if server.turns().is_closed() {
        return Err(Refusal::stopping());
    }
    let page = Page::first("default", 1);
    match timeout(STORE_TIMEOUT, server.memory().store().list(&page)).await {
        Ok(Ok(_)) => Ok(Json(json!({"status": "ready"})).into_response()),
        Ok(Err(error)) => {
            log_failure(&error.into());
            Err(Refusal::no_store())
        }
        Err(_) => Err(Refusal::no_store()),
    }
}
