//! A chat over HTTP. `events.rs` has the form of an answer, `refusal.rs` the status of an error, and `serve.rs` the
//! end of the service.
//!
//! ```text
//! POST /chat/{conversation}
//! authorization: Bearer TOKEN          the user: each one has separate conversations
//! idempotency-key: ID                  optional: the same turn again, answered once
//! {"message": "Where is my order?"}
//! ```

mod events;
mod refusal;
mod serve;

pub use serve::serve;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use advisor_chain::chain::Spawner;
use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, ChatModel, ConversationKey, FnTool, ToolCallAdvisor, TurnId, client,
};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response, Sse, sse::KeepAlive};
use axum::routing::post;
use axum::{Json, Router};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::sync::watch;

use refusal::Refusal;

/// The user of a request, kept as an extension of the turn: every advisor and every tool can read it.
#[derive(Debug, Clone)]
pub struct User {
    /// The name, which is also the tenant of the user's conversations.
    pub name: String,
}

/// The state that all requests share. The client is built once; cloning it is cheap.
#[derive(Clone)]
pub struct Service {
    client: ChatClient,
    memory: ChatMemoryAdvisor,
    /// The users by their tokens.
    users: Arc<HashMap<String, User>>,
    /// Turns to `true` when turns that still run are to end.
    stop: watch::Sender<bool>,
}

#[derive(Deserialize)]
struct Question {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The number of the order.
    number: u32,
}

impl Service {
    /// Returns a service that asks `model` and remembers in `memory`. Call it on a tokio runtime.
    ///
    /// # Errors
    /// If the chain cannot be built.
    pub fn new(
        model: impl ChatModel,
        memory: ChatMemoryAdvisor,
        users: impl IntoIterator<Item = (String, User)>,
    ) -> advisor_chain::Result<Self> {
        let order = FnTool::typed("order", "Tells where an order is.", |order: Order, call| async move {
            // The service knows the user; the model's arguments never name one.
            let user = call.turn.extensions().get::<User>().map_or_else(String::new, |user| user.name);
            Ok(format!("Order {} of {user} is on its way.", order.number))
        });
        let client = client(model)
            .advisor(memory.clone())
            .advisor(ToolCallAdvisor::builder().tool_events(true).build()?)
            .tool(order)
            // A client that disconnects drops its turn: the shown text is written at once.
            .spawner(Spawner::tokio(Handle::current()))
            .build()?;
        Ok(Self {
            client,
            memory,
            users: Arc::new(users.into_iter().collect()),
            stop: watch::Sender::new(false),
        })
    }

    /// Returns the routes.
    pub fn router(self) -> Router {
        Router::new().route("/chat/{conversation}", post(chat)).with_state(self)
    }

    fn user(&self, headers: &HeaderMap) -> Result<User, Refusal> {
        let token =
            headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        token.and_then(|token| self.users.get(token)).cloned().ok_or_else(Refusal::unknown_user)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The tokens of users are secrets.
        f.debug_struct("Service")
            .field("client", &self.client)
            .field("users", &self.users.len())
            .finish_non_exhaustive()
    }
}

/// One turn. Until it has started, an error is a status; from then on the answer is a stream of events.
async fn chat(
    State(service): State<Service>,
    Path(conversation): Path<String>,
    headers: HeaderMap,
    Json(question): Json<Question>,
) -> Result<Response, Refusal> {
    let user = service.user(&headers)?;
    let message = Some(question.message).filter(|message| !message.trim().is_empty());
    let message = message.ok_or_else(|| Refusal::bad_request("the message is empty"))?;
    let key =
        ConversationKey::in_tenant(&user.name, &conversation).map_err(|error| Refusal::bad_id(&error))?;
    let id = headers.get("idempotency-key").map(|id| id.to_str());
    let id = id.transpose().map_err(|_| Refusal::bad_request("the idempotency key is no text"))?;
    let id = id.map(TurnId::new).transpose().map_err(|error| Refusal::bad_id(&error))?;
    let turn = service.client.prompt().user(message).conversation(key).turn(id).extension(user).stream();

    let mut stop = service.stop.subscribe();
    let turn = tokio::select! {
        started = turn.started() => started?,
        _ = stop.wait_for(|stop| *stop) => return Err(Refusal::stopping()),
    };
    let events = events::of_turn(turn, stop);
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}
