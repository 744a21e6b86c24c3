//! Calls that wait for an approval, as a conversation shows them, and the decisions of users in the body of a request.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use advisor_core::{CallKey, ClientSideCall, ConversationKey, Decision, Verdict};
use serde::Serialize;
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
    if !server.takes_decisions {
        return Ok(Vec::new());
    }
    let open = server.memory.client_side_calls(conversation).await?;
    // A client can neither decide about a tool that the prompt lacks, nor send the result of another call beside decisions.
    if open.iter().any(|open| user.runs(server, &open.call.name) != Some(false)) {
        return Ok(Vec::new());
    }
    Ok(open.into_iter().filter_map(WaitingCall::new).collect())
}

impl WaitingCall {
    /// Returns `None` for a call without a key, about which nobody can decide.
    fn new(open: ClientSideCall) -> Option<Self> {
        let key = open.key?;
        let (tool, arguments) = (open.call.name.to_string(), open.call.arguments.to_string());
        Some(Self { key, tool, arguments, started: open.started })
    }
}

/// The time for which an approval is valid, unless its request says otherwise.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// Completes the decisions of a request: other arguments may be JSON text, and each approval expires.
///
/// # Errors
/// If the server takes none, for arguments that are no JSON, and for arguments of more values than a body may have.
pub(in crate::routes) fn decisions(
    server: &ChatServer,
    sent: Option<Vec<Decision>>,
) -> Result<Option<Vec<Decision>>, Refusal> {
    if sent.is_some() && !server.takes_decisions {
        return Err(Refusal::forbidden_decision());
    }
    check_values(sent.iter().flatten().filter_map(arguments_in_text).map(str::as_bytes))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let completed = |mut decision: Decision| {
        if let Some(text) = arguments_in_text(&decision) {
            let arguments = serde_json::from_str(text);
            let unread = |error| Refusal::bad_request(format!("the arguments are no valid JSON: {error}"));
            decision.verdict = Verdict::ApprovedWith(arguments.map_err(unread)?);
        }
        if !matches!(decision.verdict, Verdict::Denied(_)) {
            decision.expires_at.get_or_insert(now.saturating_add(LIFETIME.as_secs()));
        }
        Ok(decision)
    };
    sent.map(|sent| sent.into_iter().map(completed).collect()).transpose()
}

/// Returns other arguments that are JSON text.
fn arguments_in_text(decision: &Decision) -> Option<&str> {
    match &decision.verdict {
        Verdict::ApprovedWith(Value::String(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::{ChatClient, ToolCall};
    use advisor_testkit::ScriptedModel;
    use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};

    use super::*;

    /// An approval ends after an hour, unless its request says otherwise; a denial stays.
    #[test]
    fn decisions_of_a_request_are_completed() {
        let client = ChatClient::builder(ScriptedModel::new([])).build().unwrap();
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let server = ChatServer::new(client, memory).with_approvals();
        let key = serde_json::from_str("\"t1/1/0\"").unwrap();
        let call = ToolCall::new("a", "pay", "{}");
        let call = ClientSideCall { key: Some(key), call, started: false, definition: None };
        let (mut approved, mut changed) =
            (call.approve().unwrap(), call.approve_with("{\"cents\":1}".into()).unwrap());
        (approved.expires_at, changed.expires_at) = (None, Some(5));
        let sent = vec![call.deny("too much").unwrap(), approved, changed];
        let decided = decisions(&server, Some(sent)).unwrap().unwrap();
        assert_eq!(decided[0].expires_at, None, "a denial stays");
        assert!(decided[1].expires_at.is_some());
        assert_eq!(decided[2].expires_at, Some(5));
        assert!(decided[2].verdict == Verdict::ApprovedWith(serde_json::json!({"cents": 1})));
    }
}
