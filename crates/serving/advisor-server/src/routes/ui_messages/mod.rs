//! The routes of the AI SDK.

pub(super) mod history;
mod message_reader;
mod stored_turns;

use std::collections::HashSet;

use advisor_core::{ConversationKey, Message, ToolResult, TurnEnd, TurnId};
use advisor_sse::{Frames, UiMessages};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use chat_memory_advisor::store::{ReadRange, last_end};
use serde::Deserialize;
use serde_json::Value;

use crate::ChatServer;
use crate::readiness::in_time;
use crate::refusal::Refusal;
use crate::routes::ask::answers::{
    self, AnsweredCall, SentApproval, SentVerdict, ShownCall, ShowsEnds, WithEnds, approvals,
};
use crate::routes::ask::content::{Content, SentAnswer, SentMessage, SentResult};
use crate::routes::ask::headers::{Asking, CallSuffix, continued_turn, on_disconnect};
use crate::routes::ask::new_input::input_beside_decisions;
use crate::routes::ask::{Question, digest};
use crate::routes::input::{JsonBody, User};
use crate::turns::body::streamed;

/// The prefix of the id of a turn in the id of its answer.
const ANSWER: &str = "answer-";

/// The text for a client whose message is that of another turn. It knows no ids of turns.
const SENT_BEFORE: &str = "this message was sent before, with another text, other answers or other results";

/// The request of the AI SDK's transport. Its id is that of the chat.
#[derive(Debug, Deserialize)]
pub(super) struct Body {
    id: String,
    #[serde(default)]
    messages: Vec<UiMessage>,
    #[serde(default)]
    trigger: Trigger,
    /// The message that is edited, or whose answer is to be regenerated.
    #[serde(rename = "messageId")]
    message_id: Option<String>,
}

#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Trigger {
    #[default]
    SubmitMessage,
    RegenerateMessage,
}

#[derive(Debug, Deserialize)]
struct UiMessage {
    #[serde(default)]
    id: String,
    role: String,
    #[serde(default)]
    parts: Vec<Value>,
}

impl UiMessage {
    fn read(self) -> SentMessage {
        match self.role.as_str() {
            "user" => SentMessage::User(Content::Parts(self.parts)),
            "assistant" => {
                let call = |part: &Value| Some(part.get("toolCallId")?.as_str()?.to_owned());
                let calls = self.parts.iter().filter_map(call).collect();
                let answer = SentAnswer::message(&Content::Parts(self.parts), &Value::Null);
                SentMessage::Answer(SentAnswer { calls, ..answer })
            }
            _ => SentMessage::Instructions,
        }
    }
}

pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    let Asked { question, answer, decided } = question(&server, &user, body).await?;
    let encoder = encoder(&server, &user, question.key(), answer);
    let on_disconnect = on_disconnect(&headers)?;
    let answered = async {
        let turn = question.start(&server, on_disconnect).await?;
        let (encoder, turn) = WithEnds::new(encoder, decided, turn, &server, &question);
        streamed(turn, encoder, Frames::new(), &user.request).await
    };
    let answered = answered.await.map_err(|refusal| refusal.with_used_turn(SENT_BEFORE))?;
    Ok(question.named(answered))
}

fn encoder(server: &ChatServer, user: &User, turn: (ConversationKey, TurnId), answer: String) -> UiMessages {
    let encoder = encoder_without_approvals(&turn.1, answer);
    match approvals(server, user, turn) {
        Some(approvals) => encoder.with_approvals(approvals),
        None => encoder,
    }
}

fn encoder_without_approvals(turn: &TurnId, answer: String) -> UiMessages {
    UiMessages::new(answer).with_call_suffix(CallSuffix::of(turn).in_message())
}

impl ShowsEnds for UiMessages {
    fn show_end(&mut self, call: &str, result: &ToolResult, frames: &mut Frames) {
        match result.is_denied {
            true => self.earlier_denial(call, frames),
            false => self.earlier_result(call, result, frames),
        }
    }
}

/// A question, the id of the client's message that its answer extends or begins, and the calls that it decides.
struct Asked {
    question: Question,
    answer: String,
    decided: Vec<AnsweredCall>,
}

async fn question(server: &ChatServer, user: &User, body: Body) -> Result<Asked, Refusal> {
    let mut messages = body.messages;
    let last = messages.pop().ok_or_else(|| Refusal::bad_request("there is no message"))?;
    let mut sent: Vec<_> = messages.into_iter().map(UiMessage::read).collect();
    if last.role == "assistant" && body.trigger == Trigger::SubmitMessage {
        let SentParts { results, approvals } = SentParts::read(last.parts);
        let turn = turn_of(&last.id, &results, &approvals);
        // A guard may have changed the question on its way to memory. Of its answer, the results and the decisions count.
        sent.pop_if(|message| matches!(message, SentMessage::User(_)));
        sent.push(SentMessage::item(None));
        sent.extend(results.into_iter().map(SentMessage::Result));
        let ids = (Some(body.id.as_str()), Asking::named(&turn));
        let (question, decided) = answers::question(server, user, ids, sent, approvals).await?;
        return Ok(Asked { question, answer: last.id, decided });
    }
    if last.role != "user" {
        return Err(Refusal::bad_request("the last message is not one of the user"));
    }
    sent.push(SentMessage::User(Content::Parts(last.parts)));
    // The id of an answer has that of its turn; the id of a user's message is that of its turn.
    let named = body.message_id.as_deref();
    let (named, replaced) = match body.trigger {
        Trigger::RegenerateMessage => {
            let named = named.and_then(|id| id.strip_prefix(ANSWER));
            (named, Some(named.unwrap_or(&last.id)))
        }
        Trigger::SubmitMessage => (named, named),
    };
    let of_list = replaced.and_then(turn_of_message).or(turn_of_message(&last.id));
    let asking = Asking { turn: of_list, ..Asking::default() };
    let input =
        input_beside_decisions(server, user, Some(&user.conversation(&body.id)?), asking, sent).await?;
    let input = input.messages;
    let question = match replaced {
        Some(turn) => {
            let id = replacing_turn(server, user, &body.id, named, &input).await?;
            replacing(server, user, (&body.id, id.as_deref()), [turn, &last.id], input).await?
        }
        None => Question::new(user, Some(&body.id), turn_of_message(&last.id), input)?,
    };
    let answer = answer_id(&question.turn);
    Ok(Asked { question, answer, decided: Vec::new() })
}

/// Returns the id of a turn that replaces the named one. While it runs or has an answer, and is the last one, the same
/// request has the same id. Later, such as after a failure or further edits, it is a new turn.
///
/// Without the id of the replaced answer there is none: a further regeneration looks the same as a repeated request.
async fn replacing_turn(
    server: &ChatServer,
    user: &User,
    conversation: &str,
    named: Option<&str>,
    input: &[Message],
) -> Result<Option<String>, Refusal> {
    let Some(named) = named else { return Ok(None) };
    let request = digest(&serde_json::to_vec(&(named, input)).unwrap_or_default());
    let key = user.conversation(conversation)?;
    let log = in_time(server.memory.store().load(&key, ReadRange::LastTurns(1))).await?;
    let last = log.last_turn().map(TurnId::as_str).unwrap_or_default();
    let has_failed = matches!(
        last_end(&log.entries),
        Some(TurnEnd::Failed { .. } | TurnEnd::Refused | TurnEnd::Interrupted { .. })
    );
    if last.starts_with(&request) && !has_failed {
        return Ok(Some(last.to_owned()));
    }
    let place = digest(last.as_bytes());
    Ok(Some(format!("{request}-{}", place.get(..32).unwrap_or_default())))
}

/// A message that is sent again has the same id, so it is the same turn.
fn turn_of_message(id: &str) -> Option<&str> {
    Some(id).filter(|id| !id.is_empty())
}

/// Returns a question that replaces a turn: the one that the client names, else that of its message.
///
/// If memory has neither, such as after a refusal, the message begins its turn.
async fn replacing(
    server: &ChatServer,
    user: &User,
    (chat, id): (&str, Option<&str>),
    turns: [&str; 2],
    input: Vec<Message>,
) -> Result<Question, Refusal> {
    for turn in turns.into_iter().filter_map(turn_of_message) {
        let question = Question::new(user, Some(chat), id, input.clone())?;
        if let Some(question) = question.replacing(server, turn).await? {
            return Ok(question);
        }
    }
    let [_, message] = turns;
    Question::new(user, Some(chat), turn_of_message(message), input)
}

/// Returns the id of the turn that these parts of a message of the assistant begin. Sent again, they are the same turn.
fn turn_of(message: &str, results: &[SentResult], approvals: &[SentApproval]) -> String {
    let calls = results.iter().map(|result| result.call_id.as_str());
    let approvals = approvals.iter().map(|approval| approval.id.as_str());
    let parts = (message, calls.collect::<Vec<_>>(), approvals.collect::<Vec<_>>());
    continued_turn(&serde_json::to_vec(&parts).unwrap_or_default())
}

/// The id of an answer is made of the turn's, so that it is the same after a resumption.
fn answer_id(turn: &TurnId) -> String {
    format!("{ANSWER}{turn}")
}

/// The parts of a message of the assistant with which a client continues: results of calls, and answers of a person.
#[derive(Debug, Default)]
pub(super) struct SentParts {
    pub(super) results: Vec<SentResult>,
    pub(super) approvals: Vec<SentApproval>,
}

impl SentParts {
    /// Reads the parts of tools. The others are history. Models may repeat the id of a call, so the last result of an id
    /// counts: the others are those of earlier calls. Each approval has a unique id, so all of them count.
    pub(super) fn read(parts: Vec<Value>) -> Self {
        let (mut sent, mut seen) = (Self::default(), HashSet::new());
        for mut part in parts.into_iter().rev() {
            sent.approvals.extend(approval(&part));
            let id = part.get("toolCallId").and_then(Value::as_str).map(str::to_owned);
            if id.is_none_or(|id| seen.insert(id)) {
                sent.results.extend(result(&mut part));
            }
        }
        sent.approvals.reverse();
        sent.results.reverse();
        sent
    }
}

fn result(part: &mut Value) -> Option<SentResult> {
    let call_id = part.get("toolCallId")?.as_str()?.to_owned();
    let (field, is_error) = match part.get("state")?.as_str()? {
        "output-available" => ("output", false),
        "output-error" => ("errorText", true),
        _ => return None,
    };
    let content = match part.get_mut(field)?.take() {
        Value::String(text) => text,
        value => value.to_string(),
    };
    Some(SentResult { call_id, content: Content::Text(content), is_error })
}

/// Reads the answer that `addToolApprovalResponse` writes into a part.
fn approval(part: &Value) -> Option<SentApproval> {
    if part.get("state")?.as_str()? != "approval-responded" {
        return None;
    }
    let approval = part.get("approval")?;
    let reason = approval.get("reason").and_then(Value::as_str).map(str::to_owned);
    let verdict = SentVerdict::new(approval.get("approved")?.as_bool()?, reason);
    Some(SentApproval { id: approval.get("id")?.as_str()?.to_owned(), verdict, shown: shown(part) })
}

/// Returns the call that a part shows. The name of its tool is in its type, unless the tool is dynamic.
fn shown(part: &Value) -> ShownCall {
    let text = |field: &str| part.get(field).and_then(Value::as_str);
    let of_type = text("type").and_then(|kind| kind.strip_prefix("tool-"));
    ShownCall::new(of_type.or_else(|| text("toolName")), part.get("input"))
}

/// Joins the running turn of a chat from its beginning. Without one there is no content.
pub(in crate::routes) async fn resume(
    State(server): State<ChatServer>,
    user: User,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    let key = user.conversation(&id?)?;
    let running = server.turns.running(&key).await?;
    let Some(id) = running else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let turn = server.turns.join(&(key.clone(), id.clone())).await?;
    let Some(turn) = turn else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    let answer = answer_id(&id);
    let encoder = encoder(&server, &user, (key, id), answer);
    streamed(turn, encoder, Frames::new(), &user.request).await
}
