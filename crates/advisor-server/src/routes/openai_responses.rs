use advisor_core::Role;
use advisor_sse::{Frame, Frames, OpenAiResponses};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::{OnDisconnect, Question, header, new_input, server_tools};
use super::input::JsonBody;
use super::openai_chat::{ChatMessage, info, listed, without_tools};
use super::openapi::operation::Operation;
use super::user::User;
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::turns::body::{streamed, whole};

/// A request of Responses. Settings of the model belong to the chain and are ignored, except its name.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ResponsesBody")]
pub(super) struct Body {
    /// The name of the chain, as the list of models has it.
    #[serde(default)]
    model: String,
    input: Input,
    #[serde(default)]
    stream: bool,
    instructions: Option<String>,
    conversation: Option<Conversation>,
    /// The conversation, if nothing else names it.
    user: Option<String>,
    #[serde(default)]
    tools: Vec<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Input {
    Text(String),
    Items(Vec<ChatMessage>),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Conversation {
    Id(String),
    Object { id: String },
}

impl Conversation {
    fn id(&self) -> &str {
        match self {
            Self::Id(id) | Self::Object { id } => id,
        }
    }
}

pub(super) fn operation() -> Operation {
    Operation::turn("responses", "A turn for clients of OpenAI's Responses")
        .with_parameters(&["ConversationHeader", "IdempotencyKey", "ServerTools"])
        .with_body::<Body>(json!({"input": "How is the weather?", "conversation": "c1"}))
        .with_turn_or_object()
        .with_errors(&[404])
}

pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    listed(&server, &body.model)?;
    without_tools(&body.tools)?;
    let server_tools = server_tools(&headers)?;
    if body.instructions.is_some() {
        return Err(Refusal::bad_request("instructions are not accepted: the chain has its own"));
    }
    let named = body.conversation.as_ref().map(Conversation::id);
    let conversation = header(&headers, "x-conversation-id").or(named).or(body.user.as_deref());
    let messages = match body.input {
        Input::Text(text) => vec![(Role::User, text)],
        Input::Items(items) => items.into_iter().map(ChatMessage::read).collect(),
    };
    let input = new_input(messages, conversation.is_some())?;
    let question = Question::new(&user, conversation, header(&headers, "idempotency-key"), input)?;
    let encoder = OpenAiResponses::new(info(&server, &question, "resp_")).with_server_tools(server_tools);
    let turn = question.start(&server, OnDisconnect::Stop).await?;
    if body.stream {
        return Ok(question.named(streamed(turn, encoder, Frames::new(), user.request()).await?));
    }
    let stream = whole(turn, encoder, server.limits().whole_answer_bytes).await?;
    let last = Frame::read_all(&stream).iter().rev().find_map(|frame| frame.json()?.get("response").cloned());
    Ok(question.named(Json(last.unwrap_or_default()).into_response()))
}
