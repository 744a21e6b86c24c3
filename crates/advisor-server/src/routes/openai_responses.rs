mod response_id;

use advisor_sse::{Frame, Frames, OpenAiResponses};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::response_id::ResponseId;
use super::ask::content::{Content, SentMessage, SentResult};
use super::ask::new_input::new_input;
use super::ask::{OnDisconnect, Question, header, server_tools};
use super::input::{JsonBody, given, null_is_absent};
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
    #[serde(default, deserialize_with = "null_is_absent")]
    #[schemars(with = "Option<String>")]
    model: String,
    input: Input,
    #[serde(default, deserialize_with = "null_is_absent")]
    #[schemars(with = "Option<bool>")]
    stream: bool,
    instructions: Option<String>,
    conversation: Option<Conversation>,
    /// An earlier response, which names the conversation, too.
    previous_response_id: Option<String>,
    /// The conversation, if nothing else names it.
    user: Option<String>,
    #[serde(default, deserialize_with = "null_is_absent")]
    #[schemars(with = "Option<Vec<Value>>")]
    tools: Vec<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Input {
    Text(String),
    Items(Vec<InputItem>),
}

/// A message, or another item of an earlier answer, such as reasoning or a call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum InputItem {
    Message(ChatMessage),
    Other {
        #[serde(rename = "type")]
        kind: String,
        /// The call of a result.
        call_id: Option<String>,
        #[serde(default)]
        output: Value,
    },
}

impl InputItem {
    /// The server has the items of its answers in its own memory.
    fn read(self) -> SentMessage {
        match self {
            Self::Message(message) => message.read(),
            Self::Other { kind, call_id: Some(call_id), output } if kind == "function_call_output" => {
                SentMessage::Result(SentResult::new(call_id, output))
            }
            Self::Other { call_id, .. } => SentMessage::Answer(call_id.into_iter().collect()),
        }
    }
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
}

pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    listed(&server, &body.model)?;
    without_tools(&server, &user, &body.tools)?;
    let server_tools = server_tools(&headers)?;
    if given(body.instructions.as_ref()).is_some() {
        return Err(Refusal::bad_request("instructions are not accepted: the chain has its own"));
    }
    let previous = body.previous_response_id.as_deref().map(previous).transpose()?;
    let named = header(&headers, "x-conversation-id")?.or(body.conversation.as_ref().map(Conversation::id));
    let conversation = conversation(previous.as_ref(), named, given(body.user.as_ref()))?;
    let messages = match body.input {
        Input::Text(text) => vec![SentMessage::User(Content::Text(text))],
        Input::Items(items) => items.into_iter().map(InputItem::read).collect(),
    };
    let key = conversation.map(|id| user.conversation(id)).transpose()?;
    let turn = header(&headers, "idempotency-key")?;
    let input = new_input(&server, &user, key.as_ref(), turn, messages).await?;
    let question = Question::new(&user, conversation, turn, input)?;
    let question = match &previous {
        Some(previous) => question.continuing(&server, &previous.turn).await?,
        None => Some(question),
    };
    let question = question.ok_or_else(Refusal::previous_response_not_found)?;
    let id = ResponseId::write(&question.conversation, &question.turn);
    let encoder = OpenAiResponses::new(info(&server, id)).with_server_tools(server_tools);
    let encoder = continuing(encoder, body.previous_response_id);
    let turn = question.start(&server, OnDisconnect::Stop).await?;
    if body.stream {
        return Ok(question.named(streamed(turn, encoder, Frames::new(), user.request()).await?));
    }
    let stream = whole(turn, encoder, server.limits().whole_answer_bytes).await?;
    let last = Frame::read_all(&stream).iter().rev().find_map(|frame| frame.json()?.get("response").cloned());
    Ok(question.named(Json(last.unwrap_or_default()).into_response()))
}

fn continuing(encoder: OpenAiResponses, previous: Option<String>) -> OpenAiResponses {
    match previous {
        Some(previous) => encoder.with_previous(previous),
        None => encoder,
    }
}

fn previous(id: &str) -> Result<ResponseId, Refusal> {
    ResponseId::read(id).ok_or_else(Refusal::previous_response_not_found)
}

/// Returns the conversation of a request.
///
/// # Errors
/// If the earlier response is of another one than the request names.
fn conversation<'a>(
    previous: Option<&'a ResponseId>,
    named: Option<&'a str>,
    user: Option<&'a str>,
) -> Result<Option<&'a str>, Refusal> {
    match (previous.map(|previous| previous.conversation.as_str()), named) {
        (Some(previous), Some(named)) if previous != named => {
            Err(Refusal::bad_request("`previous_response_id` is of another conversation"))
        }
        (previous, named) => Ok(previous.or(named).or(user)),
    }
}
