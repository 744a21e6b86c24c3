//! The route of OpenAI's Responses API.

use std::collections::HashMap;

use advisor_core::{ConversationKey, TurnId};
use advisor_sse::{Frame, OpenAiResponses};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use super::ask::Question;
use super::ask::answers::{self, SentApproval, SentVerdict, ShownCall, read};
use super::ask::content::{Content, SentMessage, SentResult};
use super::ask::headers::{Asking, header};
use super::ask::settings::Api;
use super::input::{JsonBody, User};
use super::v1::{ApiFields, ChatMessage, answered, info};
use crate::ChatServer;
use crate::places::check_values;
use crate::refusal::Refusal;

/// A request of Responses.
#[derive(Debug, Deserialize)]
pub(super) struct Body {
    input: Option<Input>,
    instructions: Option<String>,
    conversation: Option<Conversation>,
    /// An earlier response, which names the conversation, too.
    previous_response_id: Option<String>,
    #[serde(flatten)]
    api: ApiFields,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "it is a text, or a list of messages and of other items with a `type`")]
enum Input {
    Text(String),
    Items(Vec<InputItem>),
}

/// A message, or another item of an earlier answer, such as reasoning or a call.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "it is a message, or another item with a `type`")]
enum InputItem {
    Message(ChatMessage),
    Other {
        #[serde(rename = "type")]
        kind: String,
        /// The call of a result.
        call_id: Option<String>,
        #[serde(default)]
        output: Value,
        /// The request that an `mcp_approval_response` answers.
        approval_request_id: Option<String>,
        approve: Option<bool>,
        reason: Option<String>,
        /// The id, tool and arguments of a request that is repeated beside its answer.
        #[serde(default)]
        id: Value,
        #[serde(default)]
        name: Value,
        #[serde(default)]
        arguments: Value,
    },
}

impl InputItem {
    /// Returns the answer to a request for an approval, if the item is one.
    fn approval(&self) -> Result<Option<SentApproval>, Refusal> {
        let Self::Other { kind, approval_request_id, approve, reason, .. } = self else { return Ok(None) };
        if kind != "mcp_approval_response" {
            return Ok(None);
        }
        let (Some(id), Some(approve)) = (approval_request_id, approve) else {
            let message = "an `mcp_approval_response` has `approval_request_id` and `approve`";
            return Err(Refusal::bad_request(message));
        };
        let (verdict, shown) = (SentVerdict::new(*approve, reason.clone()), ShownCall::default());
        Ok(Some(SentApproval { id: id.clone(), verdict, shown }))
    }

    /// Returns the call that a repeated request for an approval shows, and the id of the request.
    fn shown(&self) -> Option<(&str, ShownCall)> {
        let Self::Other { kind, id, name, arguments, .. } = self else { return None };
        let id = id.as_str().filter(|_| kind == "mcp_approval_request")?;
        let arguments = match arguments {
            Value::String(text) => &read(text),
            other => other,
        };
        Some((id, ShownCall::new(name.as_str(), Some(arguments))))
    }

    /// Returns the arguments that a repeated request for an approval has as JSON text: no values of the body.
    fn arguments_in_text(&self) -> Option<&[u8]> {
        match self {
            Self::Other { kind, arguments: Value::String(text), .. } if kind == "mcp_approval_request" => {
                Some(text.as_bytes())
            }
            _ => None,
        }
    }

    /// Returns the message of the item; `None` for an answer to a request for an approval. The server has the items of its
    /// answers in its own memory.
    fn read(self) -> Option<SentMessage> {
        Some(match self {
            Self::Message(message) => message.read(),
            Self::Other { kind, .. } if kind == "mcp_approval_response" => return None,
            Self::Other { kind, call_id: Some(call_id), output, .. } if kind == "function_call_output" => {
                SentMessage::Result(SentResult::new(call_id, output))
            }
            Self::Other { call_id, .. } => SentMessage::item(call_id),
        })
    }
}

impl Input {
    fn approvals(&self) -> Result<Vec<SentApproval>, Refusal> {
        let Self::Items(items) = self else { return Ok(Vec::new()) };
        check_values(items.iter().filter_map(InputItem::arguments_in_text))?;
        let shown: HashMap<_, _> = items.iter().filter_map(InputItem::shown).collect();
        let approvals = items.iter().filter_map(|item| item.approval().transpose());
        let with_shown = |approval: SentApproval| {
            let shown = shown.get(approval.id.as_str()).cloned().unwrap_or_default();
            SentApproval { shown, ..approval }
        };
        approvals.map(|approval| approval.map(with_shown)).collect()
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "it is an id, or an object with an `id`")]
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

/// The text about a response that is not to be stored.
const NOT_STORED: &str = "`store: false` is not supported: memory keeps each turn; leave it out, or name the conversation \
                          that keeps it (`conversation`), and delete that one afterwards";

pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    let stream = body.api.stream;
    let is_unstored = body.api.settings.get("store") == Some(&Value::Bool(false));
    let user = body.api.sender(&server, user, Api::Responses)?;
    if body.instructions.is_some_and(|text| !text.is_empty()) {
        return Err(Refusal::instructions());
    }
    let previous = body
        .previous_response_id
        .as_deref()
        .map(|id| ResponseId::read(id).ok_or_else(Refusal::previous_response_not_found));
    let previous = previous.transpose()?;
    let named = header(&headers, "x-conversation-id")?.or(body.conversation.as_ref().map(Conversation::id));
    let conversation = match (previous.as_ref().map(|previous| previous.conversation.as_str()), named) {
        (Some(previous), Some(named)) if previous != named => {
            return Err(Refusal::bad_request("`previous_response_id` is of another conversation"));
        }
        (previous, named) => previous.or(named),
    };
    if conversation.is_none() && is_unstored {
        return Err(Refusal::bad_request(NOT_STORED));
    }
    let input =
        body.input.ok_or_else(|| Refusal::bad_request("`input` is missing: a text, or a list of items"))?;
    let approvals = input.approvals()?;
    let messages = match input {
        Input::Text(text) => vec![SentMessage::User(Content::Text(text))],
        Input::Items(items) => items.into_iter().filter_map(InputItem::read).collect(),
    };
    let after = previous.as_ref().map(|previous| &previous.turn);
    let ids = (conversation, Asking { after, ..Asking::of(&headers)? });
    let (question, _) = answers::question(&server, &user, ids, messages, approvals).await?;
    let question = match &previous {
        Some(previous) => question.continuing(&server, &previous.turn).await?,
        None => Some(question),
    };
    let question = question.ok_or_else(Refusal::previous_response_not_found)?;
    let encoder = encoder(&server, &user, &question, body.previous_response_id);
    answered(&server, &user, &question, stream, encoder, last_response).await
}

/// Returns the answer in one piece: the response that ends the stream.
fn last_response(frames: &[Frame]) -> Value {
    frames.iter().rev().find_map(|frame| frame.json()?.get("response").cloned()).unwrap_or_default()
}

fn encoder(
    server: &ChatServer,
    user: &User,
    question: &Question,
    previous: Option<String>,
) -> OpenAiResponses {
    let id = ResponseId::write(&question.conversation, &question.turn);
    let mut encoder = OpenAiResponses::new(info(server, id));
    if let Some(previous) = previous {
        encoder = encoder.with_previous(previous);
    }
    match answers::approvals(server, user, question.key()) {
        Some(approvals) => encoder.with_approvals(approvals),
        None => encoder,
    }
}

const PREFIX: &str = "resp_";

/// The id of a response: its turn and its conversation, so that each process of a service finds both.
///
/// The tenant is no part of it: it is always that of the request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResponseId {
    pub(super) turn: TurnId,
    pub(super) conversation: String,
}

impl ResponseId {
    /// Writes the id of a turn. Its characters are letters, digits, `-`, `_` and `.`.
    pub(super) fn write(conversation: &ConversationKey, turn: &TurnId) -> String {
        format!("{PREFIX}{turn}.{}", URL_SAFE_NO_PAD.encode(conversation.conversation()))
    }

    /// Reads an id that [`write`](Self::write) may have written.
    pub(super) fn read(id: &str) -> Option<Self> {
        let (turn, conversation) = id.strip_prefix(PREFIX)?.split_once('.')?;
        let conversation = URL_SAFE_NO_PAD.decode(conversation).ok()?;
        Some(Self {
            turn: TurnId::new(turn).ok()?,
            conversation: String::from_utf8(conversation).ok().filter(|id| !id.is_empty())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn written_ids_are_read(turn in "[A-Za-z0-9_-]{1,128}", conversation in "[^\0]{1,100}") {
            let turn = TurnId::new(&turn).unwrap();
            let key = ConversationKey::new(&conversation).unwrap();
            let id = ResponseId::write(&key, &turn);
            prop_assert_eq!(ResponseId::read(&id), Some(ResponseId { turn, conversation }));
        }

        #[test]
        fn any_text_is_read_or_refused(id in "(resp_)?[A-Za-z.=+/_-]{0,40}") {
            let _ = ResponseId::read(&id);
        }
    }
}
