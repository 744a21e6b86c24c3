//! A server over a scripted model, and requests to it.

use std::time::Duration;

use advisor_core::{ChatClient, OnDrop, Spawner, ToolDefinition};
use advisor_server::{ChatServer, Tokens};
use advisor_testkit::{Answer, ScriptedModel};
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use axum::response::IntoResponse;
use chat_memory_advisor::store::ConversationStore;
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use futures::StreamExt;
use serde_json::{Value, json};
use tool_call_advisor::{FnTool, ToolCallAdvisor, ToolCallStreaming};
use tower::ServiceExt;

/// The longest wait for anything. No wait of a test is near it.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Setting {
    pub(crate) server: ChatServer,
    pub(crate) model: ScriptedModel,
}

/// A server whose chain has memory, the tool loop, and a tool `weather`.
pub(crate) fn setting(answers: impl IntoIterator<Item = Answer>) -> Setting {
    setting_of(ScriptedModel::new(answers))
}

/// The same server over this model.
pub(crate) fn setting_of(model: ScriptedModel) -> Setting {
    setting_over(InMemoryStore::new(), model)
}

/// The same server over this store and this model.
pub(crate) fn setting_over(store: impl ConversationStore, model: ScriptedModel) -> Setting {
    setting_with(store, model, OnDrop::default())
}

/// The same server, whose client has this policy for dropped turns.
pub(crate) fn setting_with(store: impl ConversationStore, model: ScriptedModel, on_drop: OnDrop) -> Setting {
    let memory = ChatMemoryAdvisor::new(store);
    let definition = ToolDefinition::new("weather", "Tells the weather.", json!({"type": "object"}));
    let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap();
    let client = ChatClient::builder(model.clone())
        .advisor(memory.clone())
        .advisor(tool_loop)
        .tool(FnTool::new(definition, |_: Value| async { Ok("sunny") }))
        .on_drop(on_drop)
        .spawner(Spawner::new(|_| panic!("the server has a task for each turn")))
        .build()
        .unwrap();
    Setting { server: ChatServer::new(client, memory), model }
}

/// The same server for two tenants, `ann` and `bob`.
pub(crate) fn with_tokens(setting: Setting) -> Setting {
    let tokens = Tokens::new([("the-token-of-ann", "ann"), ("the-token-of-bob", "bob")]).unwrap();
    Setting { server: setting.server.with_tokens(tokens), model: setting.model }
}

impl Setting {
    /// Sends a request, to `localhost` if it names no host.
    pub(crate) async fn send(&self, mut request: Request<Body>) -> Response<Body> {
        request.headers_mut().entry("host").or_insert(HeaderValue::from_static("localhost"));
        let answered = tokio::time::timeout(LIMIT, self.server.router().oneshot(request)).await;
        answered.unwrap().into_response()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response<Body> {
        let request = post_in(path, body);
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Response<Body> {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }
}

pub(crate) fn post(path: &str) -> axum::http::request::Builder {
    Request::post(path).header("content-type", "application/json")
}

/// A request whose body is this one. Below `/v1` the conversation has no field, so it is that of the end user here.
pub(crate) fn post_in(path: &str, body: &Value) -> axum::http::request::Builder {
    match body["user"].as_str().filter(|id| path.starts_with("/v1/") && !id.is_empty()) {
        Some(id) => post(path).header("x-conversation-id", id),
        None => post(path),
    }
}

/// Reads a body to its end.
pub(crate) async fn text(response: Response<Body>) -> String {
    let bytes = tokio::time::timeout(LIMIT, axum::body::to_bytes(response.into_body(), usize::MAX)).await;
    String::from_utf8(bytes.unwrap().unwrap().to_vec()).unwrap()
}

pub(crate) async fn json_of(response: Response<Body>) -> Value {
    serde_json::from_str(&text(response).await).unwrap()
}

/// Reads a body until it has this text, and returns it with the rest of the body.
pub(crate) async fn until(response: Response<Body>, wanted: &str) -> (String, axum::body::BodyDataStream) {
    let mut body = response.into_body().into_data_stream();
    let mut read = String::new();
    while !read.contains(wanted) {
        let piece = tokio::time::timeout(LIMIT, body.next()).await.unwrap();
        read.push_str(std::str::from_utf8(&piece.unwrap().unwrap()).unwrap());
    }
    (read, body)
}

/// Returns the code of an error, after a check of its status.
pub(crate) async fn refused(response: Response<Body>, status: StatusCode) -> String {
    assert_eq!(response.status(), status);
    json_of(response).await["error"]["code"].as_str().unwrap().to_owned()
}
