//! Whether the process runs, and whether turns can begin.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::ChatServer;
use crate::refusal::Refusal;
use crate::routes::openapi::operation::Operation;

/// The state of the server.
#[derive(Debug, Serialize, JsonSchema)]
struct Status {
    status: &'static str,
}

pub(in crate::routes) fn alive_operation() -> Operation {
    Operation::open("healthz", "Whether the process runs").with_json::<Status>()
}

/// Answers while the process runs.
pub(in crate::routes) async fn alive() -> Response {
    Json(Status { status: "alive" }).into_response()
}

pub(in crate::routes) fn ready_operation() -> Operation {
    Operation::open("readyz", "Whether turns can begin: the server is not stopping, and the store answers")
        .with_json::<Status>()
        .with_errors(&[500, 503])
}

/// Answers whether turns can begin: the server is not stopping, and the store answers.
pub(in crate::routes) async fn ready(State(server): State<ChatServer>) -> Result<Response, Refusal> {
    if server.turns().is_closed() {
        return Err(Refusal::stopping());
    }
    server.readiness().check(server.memory()).await?;
    Ok(Json(Status { status: "ready" }).into_response())
}
