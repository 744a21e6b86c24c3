use advisor_core::{CallKey, ClientSideCall, Decision, ToolCall, TurnId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ChatServer;
use crate::refusal::Refusal;

/// The key of a call.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CallKey")]
#[serde(deny_unknown_fields)]
pub(super) struct SentKey {
    pub(super) turn: String,
    pub(super) round: u32,
    pub(super) position: u32,
}

/// A decision about a call that waits, bound to the arguments that the person has seen.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Decision")]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct SentDecision {
    key: SentKey,
    tool: String,
    arguments: String,
    verdict: SentVerdict,
}

/// A verdict: the call runs, it runs with other arguments (an object, or its JSON text), or the model reads why it does not.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Verdict")]
#[serde(rename_all = "snake_case")]
enum SentVerdict {
    Approved,
    ApprovedWith(Value),
    Denied(String),
}

impl SentDecision {
    fn read(self) -> Result<Decision, Refusal> {
        let bad = |error: advisor_core::Error| Refusal::bad_request(error.to_string());
        let SentKey { turn, round, position } = self.key;
        let key = CallKey::new(TurnId::new(&turn).map_err(bad)?, round, position);
        let open = ClientSideCall::new(Some(key), ToolCall::new("", self.tool, self.arguments.as_str()));
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
        decision.map_err(bad)
    }
}

/// Reads the decisions of a request.
///
/// # Errors
/// If the server takes none.
pub(in crate::routes) fn decisions(
    server: &ChatServer,
    sent: Option<Vec<SentDecision>>,
) -> Result<Option<Vec<Decision>>, Refusal> {
    if sent.is_some() && !server.takes_decisions() {
        return Err(Refusal::forbidden_decision());
    }
    sent.map(|sent| sent.into_iter().map(SentDecision::read).collect()).transpose()
}
