//! What the routes for clients of OpenAI and Anthropic share: fields, messages, answers, and the list of models.

use advisor_sse::{AnswerInfo, Encoder, Frame, Frames};
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::Question;
use super::ask::content::{Content, SentAnswer, SentMessage, SentResult};
use super::ask::headers::{Asking, header};
use super::ask::new_input::new_input;
use super::ask::settings::{Api, Fields};
use super::input::{User, null_is_absent};
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::turns::body::{streamed, whole};
use crate::turns::run::OnDisconnect;

/// The fields that the requests of OpenAI's and Anthropic's APIs share.
#[derive(Debug, Deserialize)]
pub(super) struct ApiFields {
    /// The name of the chain, as the list of models has it.
    #[serde(default, deserialize_with = "null_is_absent")]
    model: String,
    #[serde(default, deserialize_with = "null_is_absent")]
    pub(super) stream: bool,
    #[serde(default, deserialize_with = "null_is_absent")]
    tools: Vec<Value>,
    /// Settings. The README of the crate says which ones are honoured, refused or ignored.
    #[serde(flatten)]
    pub(super) settings: Fields,
}

impl ApiFields {
    /// Returns the sender of the request, who asks for these settings. They are dropped here, since a turn may take long.
    ///
    /// # Errors
    /// For a model that is not listed, a setting that the chain cannot have, and tools of the client.
    pub(super) fn sender(self, server: &ChatServer, user: User, api: Api) -> Result<User, Refusal> {
        listed(server, &self.model)?;
        let user = user.asking_for(api.options(server, &self.settings, &self.tools)?);
        without_tools(server, &user, &self.tools)?;
        Ok(user)
    }
}

/// Returns the question of a client's list in the conversation that the header names.
pub(super) async fn listed_question(
    server: &ChatServer,
    user: &User,
    headers: &HeaderMap,
    messages: Vec<SentMessage>,
) -> Result<Question, Refusal> {
    let conversation = header(headers, "x-conversation-id")?;
    let key = conversation.map(|id| user.conversation(id)).transpose()?;
    let asking = Asking::of(headers)?;
    let input = new_input(server, user, key.as_ref(), asking, messages).await?;
    Ok(Question::new(user, conversation, asking.turn, input.messages)?.repeating(input.repeated))
}

/// Answers a question as a stream, or in one piece, which `join` makes of the frames.
pub(super) async fn answered(
    server: &ChatServer,
    user: &User,
    question: &Question,
    stream: bool,
    encoder: impl Encoder + 'static,
    join: fn(&[Frame]) -> Value,
) -> Result<Response, Refusal> {
    let turn = question.start(server, OnDisconnect::Stop).await?;
    if stream {
        return Ok(question.named(streamed(turn, encoder, Frames::new(), &user.request).await?));
    }
    let frames = Frame::read_all(&whole(turn, encoder, server.limits.whole_answer_bytes).await?);
    Ok(question.named(Json(join(&frames)).into_response()))
}

#[derive(Debug, Deserialize)]
pub(super) struct ChatMessage {
    pub(super) role: String,
    #[serde(default)]
    pub(super) content: Content,
    /// The call of a result.
    tool_call_id: Option<String>,
    /// The calls of an answer.
    #[serde(default)]
    tool_calls: Value,
}

impl ChatMessage {
    pub(super) fn read(self) -> SentMessage {
        match (self.role.as_str(), self.tool_call_id) {
            ("user", _) => SentMessage::User(self.content),
            ("tool", Some(call_id)) => {
                SentMessage::Result(SentResult { call_id, content: self.content, is_error: false })
            }
            ("assistant", _) => SentMessage::Answer(SentAnswer::message(&self.content, &self.tool_calls)),
            ("tool" | "function", _) => SentMessage::item(None),
            _ => SentMessage::Instructions,
        }
    }
}

/// Refuses tools of the client: the chain has its own. The client may name those of the chain that it runs.
pub(super) fn without_tools(server: &ChatServer, user: &User, tools: &[Value]) -> Result<(), Refusal> {
    if tools.is_empty() {
        return Ok(());
    }
    let is_known = |tool: &Value| {
        let name = tool.pointer("/function/name").or(tool.get("name")).and_then(Value::as_str);
        name.and_then(|name| user.runs(server, name)) == Some(true)
    };
    match tools.iter().all(is_known) {
        true => Ok(()),
        false => Err(Refusal::bad_request("tools of the client are not accepted: the chain runs its own")),
    }
}

/// Refuses a model that is not listed. A request without one is for the chain.
pub(super) fn listed(server: &ChatServer, model: &str) -> Result<(), Refusal> {
    match model.is_empty() || model == server.name.as_str() {
        true => Ok(()),
        false => Err(Refusal::model_not_found(&server.name)),
    }
}

/// Returns the data that an answer with this id repeats.
pub(super) fn info(server: &ChatServer, id: String) -> AnswerInfo {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let created = since.map_or(0, |since| since.as_secs());
    AnswerInfo { id: id.into(), model: server.name.as_str().into(), created }
}

/// Returns the chain as a model, with the fields of both APIs.
fn described(server: &ChatServer) -> Value {
    json!({
        "id": server.name,
        "object": "model",
        "created": 0,
        "owned_by": "advisor-chain",
        "type": "model",
        "display_name": server.name,
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
    })
}

/// Lists the chain as the one model, in a form that clients of OpenAI and of Anthropic read.
pub(super) async fn models(State(server): State<ChatServer>, _user: User) -> Json<Value> {
    let (data, id) = ([described(&server)], server.name);
    Json(json!({"object": "list", "data": data, "has_more": false, "first_id": id, "last_id": id}))
}

/// Returns the chain as a model.
pub(super) async fn model(
    State(server): State<ChatServer>,
    _user: User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, Refusal> {
    let Path(id) = id?;
    listed(&server, &id)?;
    Ok(Json(described(&server)))
}
