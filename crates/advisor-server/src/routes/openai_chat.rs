//! The routes of OpenAI's Chat Completions API, and of the list of models.

use advisor_sse::{AnswerInfo, Frame, Frames, OpenAiChat};
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ChatServer;
use crate::refusal::Refusal;
use crate::routes::ask::Question;
use crate::routes::ask::content::{Content, SentAnswer, SentMessage, SentResult};
use crate::routes::ask::headers::{Asking, header, server_tools};
use crate::routes::ask::new_input::new_input;
use crate::routes::ask::settings::{Api, Fields};
use crate::routes::input::{JsonBody, User, given, null_is_absent};
use crate::turns::body::{streamed, whole};
use crate::turns::run::OnDisconnect;

/// A request of Chat Completions.
#[derive(Debug, Deserialize)]
pub(super) struct Body {
    /// The name of the chain, as the list of models has it.
    #[serde(default, deserialize_with = "null_is_absent")]
    model: String,
    messages: Vec<ChatMessage>,
    #[serde(default, deserialize_with = "null_is_absent")]
    stream: bool,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    /// The end user. It names the conversation only if the server is set so, and no header does.
    user: Option<String>,
    #[serde(default, deserialize_with = "null_is_absent")]
    tools: Vec<Value>,
    /// Settings. The README of the crate says which ones are honoured, refused or ignored.
    #[serde(flatten)]
    settings: Fields,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    #[serde(default, deserialize_with = "null_is_absent")]
    include_usage: bool,
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
    let prompt = user.prompt(server);
    let is_known = |tool: &Value| {
        let name = tool.pointer("/function/name").or(tool.get("name")).and_then(Value::as_str);
        let tool = name.and_then(|name| prompt.tools().find(name));
        tool.is_some_and(|tool| tool.definition().client_side)
    };
    match tools.iter().all(is_known) {
        true => Ok(()),
        false => Err(Refusal::bad_request("tools of the client are not accepted: the chain runs its own")),
    }
}

/// Refuses a model that is not listed. A request without one is for the chain.
pub(super) fn listed(server: &ChatServer, model: &str) -> Result<(), Refusal> {
    match model.is_empty() || model == server.name().as_str() {
        true => Ok(()),
        false => Err(Refusal::model_not_found(server.name())),
    }
}

/// Returns the data that an answer with this id repeats.
pub(super) fn info(server: &ChatServer, id: String) -> AnswerInfo {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    AnswerInfo::new(id, server.name().as_str(), since.map_or(0, |since| since.as_secs()))
}

pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    listed(&server, &body.model)?;
    let user = user.asking_for(Api::ChatCompletions.options(&server, &body.settings, &body.tools)?);
    without_tools(&server, &user, &body.tools)?;
    // A turn may take long.
    drop((body.settings, body.tools));
    let shows_tools = server_tools(&headers)?;
    let conversation = header(&headers, "x-conversation-id")?;
    let conversation = conversation.or(server.conversation_of(given(body.user.as_ref())));
    let messages = body.messages.into_iter().map(ChatMessage::read).collect();
    let key = conversation.map(|id| user.conversation(id)).transpose()?;
    let asking = Asking::of(&headers)?;
    let input = new_input(&server, &user, key.as_ref(), asking, messages).await?;
    let question = Question::new(&user, conversation, asking.turn, input.messages)?.repeating(input.repeated);
    let info = info(&server, format!("chatcmpl-{}", question.turn));
    let turn = question.start(&server, OnDisconnect::Stop).await?;
    if !body.stream {
        let encoder = OpenAiChat::new(info).with_usage();
        let stream = whole(turn, encoder, server.limits().whole_answer_bytes).await?;
        return Ok(question.named(Json(completion(&Frame::read_all(&stream))).into_response()));
    }
    let encoder = OpenAiChat::new(info);
    let has_usage = body.stream_options.unwrap_or_default().include_usage;
    let encoder = if has_usage { encoder.with_usage() } else { encoder };
    let encoder = if shows_tools { encoder.with_server_tools() } else { encoder };
    Ok(question.named(streamed(turn, encoder, Frames::new(), user.request()).await?))
}

/// Returns the answer in one piece, joined from the chunks of its stream.
fn completion(frames: &[Frame]) -> Value {
    let chunks: Vec<Value> = frames.iter().filter_map(Frame::json).collect();
    let joined = |place: &str| -> String {
        chunks.iter().filter_map(|chunk| chunk.pointer(place)?.as_str()).collect()
    };
    let some = |text: String| if text.is_empty() { Value::Null } else { Value::String(text) };
    let calls = calls_of(&chunks);
    let mut message = json!({
        "role": "assistant",
        "content": some(joined("/choices/0/delta/content")),
        "refusal": some(joined("/choices/0/delta/refusal")),
    });
    let reasoning = joined("/choices/0/delta/reasoning_content");
    if let Some(fields) = message.as_object_mut() {
        let reasoning = (!reasoning.is_empty()).then(|| ("reasoning_content".into(), reasoning.into()));
        fields.extend(reasoning);
        fields.extend((!calls.is_empty()).then(|| ("tool_calls".into(), calls.into())));
        let annotations = chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/annotations/0"));
        let annotations: Vec<_> = annotations.cloned().collect();
        fields.extend((!annotations.is_empty()).then(|| ("annotations".into(), annotations.into())));
    }
    let of_last = |place: &str| {
        chunks.iter().rev().find_map(|chunk| chunk.pointer(place).filter(|value| !value.is_null()))
    };
    let of_first = |field: &str| chunks.first().and_then(|chunk| chunk.get(field)).cloned();
    let choice = json!({
        "index": 0,
        "message": message,
        "logprobs": null,
        "finish_reason": of_last("/choices/0/finish_reason"),
    });
    json!({
        "id": of_first("id"),
        "object": "chat.completion",
        "created": of_first("created"),
        "model": of_first("model"),
        "choices": [choice],
        "usage": of_last("/usage"),
    })
}

/// Returns the calls, which come whole, without their places in the stream.
fn calls_of(chunks: &[Value]) -> Vec<Value> {
    let calls = chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/tool_calls/0").cloned());
    calls
        .map(|mut call| {
            call.as_object_mut().map(|fields| fields.remove("index"));
            call
        })
        .collect()
}

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
pub(super) async fn models(State(server): State<ChatServer>, _user: User) -> Json<Models> {
    let (data, id) = ([Model::new(&server)], server.name().to_string());
    Json(Models { object: "list", data, has_more: false, first_id: id.clone(), last_id: id })
}

/// Returns the chain as a model.
pub(super) async fn model(
    State(server): State<ChatServer>,
    _user: User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Model>, Refusal> {
    let Path(id) = id?;
    listed(&server, &id)?;
    Ok(Json(Model::new(&server)))
}
