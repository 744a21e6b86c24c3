//! The list of models: the chain as the one model, in a form that clients of OpenAI and of Anthropic read.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::Serialize;

use super::openai_chat::listed;
use super::user::User;
use crate::ChatServer;
use crate::refusal::Refusal;

/// The list of models. Its fields are those of both APIs.
#[derive(Debug, Serialize)]
pub(super) struct Models {
    object: &'static str,
    data: [Model; 1],
    has_more: bool,
    first_id: String,
    last_id: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Model {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    display_name: String,
    created_at: &'static str,
    lifecycle: &'static str,
}

impl Model {
    fn new(server: &ChatServer) -> Self {
        let name = server.name().to_string();
        Self {
            id: name.clone(),
            object: "model",
            created: 0,
            owned_by: "advisor-chain",
            kind: "model",
            display_name: name,
            created_at: "1970-01-01T00:00:00Z",
            lifecycle: "active",
        }
    }
}

/// Lists the chain as the one model.
pub(super) async fn list(State(server): State<ChatServer>, _user: User) -> Json<Models> {
    let (data, id) = ([Model::new(&server)], server.name().to_string());
    Json(Models { object: "list", data, has_more: false, first_id: id.clone(), last_id: id })
}

/// Returns the chain as a model.
pub(super) async fn one(
    State(server): State<ChatServer>,
    _user: User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Model>, Refusal> {
    let Path(id) = id?;
    listed(&server, &id)?;
    Ok(Json(Model::new(&server)))
}
