//! `WaitingCall`: a call that waits, as a conversation shows it.

use advisor_core::{CallKey, ClientSideCall, ConversationKey};
use serde::Serialize;

use super::super::user::User;
use crate::ChatServer;
use crate::refusal::Refusal;

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
