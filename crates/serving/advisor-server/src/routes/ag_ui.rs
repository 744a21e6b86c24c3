//! The route of AG-UI.

use advisor_core::ToolResult;
use advisor_sse::{AgUi, Frames};
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::ask::answers::{self, SentApproval, SentVerdict};
use super::ask::content::{SentAnswer, SentMessage, SentResult};
use super::input::{JsonBody, null_is_absent};
use super::v1::without_tools;
use crate::ChatServer;
use crate::refusal::Refusal;
use crate::routes::ask::answers::{ShownCall, ShowsEnds, WithEnds};
use crate::routes::ask::headers::{Asking, CallSuffix};
use crate::routes::input::User;
use crate::turns::body::streamed;
use crate::turns::run::OnDisconnect;

/// The input of a run. Its thread is the conversation, and the run is the turn. State, context and forwarded properties
/// are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body {
    thread_id: String,
    run_id: String,
    #[serde(default)]
    messages: Vec<AgMessage>,
    #[serde(default, deserialize_with = "null_is_absent")]
    tools: Vec<Value>,
    /// The answers to the interrupts of the last run.
    #[serde(default, deserialize_with = "null_is_absent")]
    resume: Vec<ResumeEntry>,
}

/// The answer to an interrupt, with the payload `{approved, reason, editedArgs}`. An abandoned one is a denial.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResumeEntry {
    interrupt_id: String,
    status: ResumeStatus,
    payload: Option<Payload>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum ResumeStatus {
    Resolved,
    Cancelled,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Payload {
    approved: Option<bool>,
    reason: Option<String>,
    /// The arguments with which an approved call runs, in place of those of the model.
    edited_args: Option<Map<String, Value>>,
}

impl ResumeEntry {
    fn read(self) -> Result<SentApproval, Refusal> {
        let verdict = match (self.status, self.payload) {
            (
                ResumeStatus::Resolved,
                Some(Payload { approved: Some(true), edited_args: Some(edited), .. }),
            ) => SentVerdict::ApprovedWith(edited.into()),
            (_, Some(Payload { edited_args: Some(_), .. })) => {
                return Err(Refusal::bad_request(
                    "`editedArgs` belongs to an approval: `\"approved\": true`",
                ));
            }
            (ResumeStatus::Cancelled, payload) => {
                SentVerdict::new(false, payload.and_then(|payload| payload.reason))
            }
            (ResumeStatus::Resolved, Some(Payload { approved: Some(approved), reason, .. })) => {
                SentVerdict::new(approved, reason)
            }
            (ResumeStatus::Resolved, _) => {
                return Err(Refusal::bad_request(
                    "a resolved interrupt needs the payload `{approved, reason, editedArgs}`",
                ));
            }
        };
        // The client sends the call elsewhere, in the messages of the thread.
        Ok(SentApproval { id: self.interrupt_id, verdict, shown: ShownCall::default() })
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgMessage {
    role: String,
    #[serde(default)]
    content: Value,
    /// The call of a result.
    tool_call_id: Option<String>,
    /// The failure of a call.
    error: Option<String>,
    /// The calls of an answer.
    #[serde(default)]
    tool_calls: Value,
}

impl AgMessage {
    /// Reasoning and activities are the client's own notes.
    fn read(self) -> Option<SentMessage> {
        Some(match (self.role.as_str(), self.tool_call_id) {
            ("user", _) => SentMessage::User(self.content.into()),
            ("tool", Some(call_id)) => {
                let is_error = self.error.is_some();
                let content = self.error.map_or(self.content, Value::String);
                SentMessage::Result(SentResult { is_error, ..SentResult::new(call_id, content) })
            }
            ("assistant", _) => {
                SentMessage::Answer(SentAnswer::message(&self.content.into(), &self.tool_calls))
            }
            ("tool", _) => SentMessage::item(None),
            ("system" | "developer", _) => SentMessage::Instructions,
            _ => return None,
        })
    }
}

pub(super) async fn ask(
    State(server): State<ChatServer>,
    user: User,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, Refusal> {
    without_tools(&server, &user, &body.tools)?;
    // A turn may take long.
    drop(body.tools);
    let messages = body.messages.into_iter().filter_map(AgMessage::read).collect();
    let approvals = body.resume.into_iter().map(ResumeEntry::read).collect::<Result<_, _>>()?;
    let ids = (Some(body.thread_id.as_str()), Asking::named(&body.run_id));
    let (question, decided) = answers::question(&server, &user, ids, messages, approvals).await?;
    let turn = question.start(&server, OnDisconnect::Stop).await?;
    let suffix = CallSuffix::of(&question.turn).in_thread();
    let encoder = AgUi::new(body.thread_id, body.run_id).with_call_suffix(suffix);
    let encoder = match answers::approvals(&server, &user, question.key()) {
        Some(approvals) => encoder.with_approvals(approvals),
        None => encoder,
    };
    let (encoder, turn) = WithEnds::new(encoder, decided, turn, &server, &question);
    Ok(question.named(streamed(turn, encoder, Frames::new(), &user.request).await?))
}

impl ShowsEnds for AgUi {
    fn show_end(&mut self, call: &str, result: &ToolResult, frames: &mut Frames) {
        self.earlier_result(call, result, frames);
    }
}
