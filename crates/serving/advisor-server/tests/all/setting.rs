//! A server over a scripted model, and requests to it.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use advisor_core::{ChatClient, ChatClientBuilder, OnDrop, Spawner, ToolDefinition};
use advisor_server::{ChatServer, ServerLimits, Tokens};
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
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

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

/// A server whose chain has memory, and what the test adds.
pub(crate) fn chain(
    answers: impl IntoIterator<Item = Answer>,
    add: impl FnOnce(ChatClientBuilder) -> ChatClientBuilder,
) -> Setting {
    chain_over(ChatMemoryAdvisor::new(InMemoryStore::new()), ScriptedModel::new(answers), add)
}

/// The same over this memory and this model.
pub(crate) fn chain_over(
    memory: ChatMemoryAdvisor,
    model: ScriptedModel,
    add: impl FnOnce(ChatClientBuilder) -> ChatClientBuilder,
) -> Setting {
    let client = add(ChatClient::builder(model.clone()).advisor(memory.clone())).build().unwrap();
    Setting { server: ChatServer::new(client, memory), model }
}

/// The same server for two tenants, `ann` and `bob`.
pub(crate) fn with_tokens(setting: Setting) -> Setting {
    let tokens = Tokens::new([("the-token-of-ann", "ann"), ("the-token-of-bob", "bob")]).unwrap();
    setting.with(|server| server.with_tokens(tokens))
}

impl Setting {
    pub(crate) fn with(self, change: impl FnOnce(ChatServer) -> ChatServer) -> Self {
        Self { server: change(self.server), ..self }
    }

    pub(crate) fn limited(self, change: impl FnOnce(&mut ServerLimits)) -> Self {
        let mut limits = ServerLimits::default();
        change(&mut limits);
        self.with(|server| server.with_limits(limits))
    }

    /// Reads conversation `c1`.
    pub(crate) async fn read(&self) -> Value {
        json_of(self.get("/api/conversations/c1").await).await
    }

    /// Returns the texts of the messages of conversation `c1`.
    pub(crate) async fn texts(&self) -> Vec<String> {
        texts_of(&self.read().await)
    }

    /// Stops the turns of conversation `c1`.
    pub(crate) async fn stop(&self) {
        let stop = post("/api/conversations/c1/stop").body(Body::empty()).unwrap();
        assert_eq!(self.send(stop).await.status(), StatusCode::NO_CONTENT);
    }

    /// Deletes conversation `c1`.
    pub(crate) async fn delete(&self) {
        let delete = Request::delete("/api/conversations/c1").body(Body::empty()).unwrap();
        assert_eq!(self.send(delete).await.status(), StatusCode::NO_CONTENT);
    }

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

    /// Sends a request that names its turn.
    pub(crate) async fn post_as(&self, turn: &str, path: &str, body: &Value) -> Response<Body> {
        let request = post_in(path, body).header("idempotency-key", turn);
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

/// Returns the texts of the messages of a page.
pub(crate) fn texts_of(page: &Value) -> Vec<String> {
    let messages = page["messages"].as_array().unwrap().iter();
    messages.map(|message| message["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Reads a body to its end.
pub(crate) async fn text(response: Response<Body>) -> String {
    let bytes = tokio::time::timeout(LIMIT, axum::body::to_bytes(response.into_body(), usize::MAX)).await;
    String::from_utf8(bytes.unwrap().unwrap().to_vec()).unwrap()
}

/// Reads the rest of a body.
pub(crate) async fn rest_of(body: axum::body::BodyDataStream) -> String {
    text(Response::new(Body::from_stream(body))).await
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

/// Returns the message of an error, after a check of its status.
pub(crate) async fn told(response: Response<Body>, status: StatusCode) -> String {
    let found = response.status();
    let body = json_of(response).await;
    assert_eq!(found, status, "{body}");
    body["error"]["message"].as_str().unwrap().to_owned()
}

/// Returns the code of an error, after a check of its status.
pub(crate) async fn refused(response: Response<Body>, status: StatusCode) -> String {
    assert_eq!(response.status(), status);
    json_of(response).await["error"]["code"].as_str().unwrap().to_owned()
}

/// Collects what is logged.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
