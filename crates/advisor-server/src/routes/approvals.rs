//! Calls that wait for an approval, as a conversation shows them, and the decisions of users in the body of a request.

use advisor_core::{CallKey, ClientSideCall, ConversationKey, Decision, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ChatServer;
use crate::places::check_values;
use crate::refusal::Refusal;
use crate::routes::input::User;

/// A call that waits for a decision.
#[derive(Debug, Serialize)]
pub(in crate::routes) struct WaitingCall {
    /// The key of the call, as a decision about it names it.
    key: CallKey,
    tool: String,
    /// The arguments, as the model wrote them.
    arguments: String,
    /// Whether it was started and is lost: its turn was stopped, or its process has ended. It needs no decision then: the
    /// model is asked to verify it.
    started: bool,
}

/// Returns the calls of a conversation that wait for a decision, if clients can decide about all of them. Calls of
/// client-side tools wait for their results.
pub(in crate::routes) async fn waiting(
    server: &ChatServer,
    user: &User,
    conversation: &ConversationKey,
) -> Result<Vec<WaitingCall>, Refusal> {
    if !server.takes_decisions() {
        return Ok(Vec::new());
    }
    let open = server.memory().client_side_calls(conversation).await;
    let open = open.map_err(|error| Refusal::from(&error))?;
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let prompt = user.prompt(server);
    let is_of_client = |open: &ClientSideCall| {
        prompt.tools().find(&open.call.name).map(|tool| tool.definition().client_side)
    };
    // A client can neither decide about a tool that the prompt lacks, nor send the result of another call beside decisions.
    if open.iter().any(|open| is_of_client(open) != Some(false)) {
        return Ok(Vec::new());
    }
    Ok(open.into_iter().filter_map(WaitingCall::new).collect())
}

impl WaitingCall {
    /// Returns `None` for a call of an older version, which has no key.
    fn new(open: ClientSideCall) -> Option<Self> {
        let key = open.key?;
        let (tool, arguments) = (open.call.name.to_string(), open.call.arguments.to_string());
        Some(Self { key, tool, arguments, started: open.started })
    }
}

/// A decision about a call that waits, bound to the arguments that the person has seen: the JSON form of [`Decision`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct SentDecision {
    /// The key of the call, as it was shown.
    key: CallKey,
    tool: String,
    arguments: String,
    verdict: SentVerdict,
    /// The Unix time in seconds from which on the decision is no longer valid. Without one, an approval is valid for an
    /// hour.
    expires_at: Option<u64>,
}

/// A verdict: the call runs, it runs with other arguments (an object, or its JSON text), or the model reads why it does not.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SentVerdict {
    Approved,
    ApprovedWith(Value),
    Denied(String),
}

impl SentDecision {
    /// Returns other arguments that are JSON text: no values of the body.
    fn arguments_in_text(&self) -> Option<&[u8]> {
        match &self.verdict {
            SentVerdict::ApprovedWith(Value::String(text)) => Some(text.as_bytes()),
            _ => None,
        }
    }

    fn read(self) -> Result<Decision, Refusal> {
        let bad = |error: advisor_core::Error| Refusal::bad_request(error.to_string());
        let open = ClientSideCall::new(Some(self.key), ToolCall::new("", self.tool, self.arguments.as_str()));
        let decision = match self.verdict {
            SentVerdict::Approved => open.approve(),
            SentVerdict::ApprovedWith(Value::String(text)) => {
                let arguments = serde_json::from_str(&text);
                let unread =
                    |error| Refusal::bad_request(format!("the arguments are no valid JSON: {error}"));
                open.approve_with(arguments.map_err(unread)?)
            }
            SentVerdict::ApprovedWith(arguments) => open.approve_with(arguments),
            SentVerdict::Denied(reason) => open.deny(reason),
        };
        let mut decision = decision.map_err(bad)?;
        decision.expires_at = self.expires_at.or(decision.expires_at);
        Ok(decision)
    }
}

/// Reads the decisions of a request.
///
/// # Errors
/// If the server takes none, and for arguments of more values than a body may have.
pub(in crate::routes) fn decisions(
    server: &ChatServer,
    sent: Option<Vec<SentDecision>>,
) -> Result<Option<Vec<Decision>>, Refusal> {
    if sent.is_some() && !server.takes_decisions() {
        return Err(Refusal::forbidden_decision());
    }
    check_values(sent.iter().flatten().filter_map(SentDecision::arguments_in_text))?;
    sent.map(|sent| sent.into_iter().map(SentDecision::read).collect()).transpose()
}
