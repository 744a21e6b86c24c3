//! Calls that wait for their caller, what a person decides about them, and the parts of a chain that list and run them.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use message_aggregator::{Text, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallKey, ChatRequest, ConversationKey, DecisionProblem, Error, ErrorKind, Result};

/// A call that its turn left to the caller, and that has no result yet.
///
/// It has a JSON form, so that a person in another process sees it and decides.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs, reason = "memories and tests write it")]
pub struct ClientSideCall {
    /// The permanent key of the call, the same in every process.
    ///
    /// `None` if the answer was written by a version that did not store rounds.
    pub key: Option<CallKey>,
    /// The call that the model made.
    pub call: ToolCall,
    /// Whether its start is recorded: it runs or ran, and its result is still to come.
    pub started: bool,
    /// The [digest](crate::ToolDefinition::digest) of its tool's definition, as the model was offered it. `None` if the
    /// loop did not know the tool, and for a call that an older version stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Text>,
}

impl fmt::Debug for ClientSideCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments are content and must not be logged.
        f.debug_struct("ClientSideCall")
            .field("key", &self.key)
            .field("name", &self.call.name)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}

/// The time for which an approval is valid, unless the code that makes it says otherwise.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// A person's decision about one call, for [`Prompt::resume`](crate::Prompt::resume).
///
/// It is bound to the call's key, tool and exact arguments, and an approval expires: after an hour by default. It has a
/// JSON form, so that it can be made in one process and applied in another.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Decision {
    /// The key of the call.
    pub key: CallKey,
    /// The name of the tool.
    pub tool: Text,
    /// The arguments that the person has seen, exactly as the model wrote them.
    pub arguments: String,
    /// The decision.
    pub verdict: Verdict,
    /// The Unix time in seconds from which on the decision is no longer valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// What a person has decided about a call.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The call runs as the model wrote it.
    Approved,
    /// The call runs with these arguments.
    ApprovedWith(Value),
    /// The call does not run. The model reads this reason.
    Denied(Text),
}

impl ClientSideCall {
    /// Approves the call as it is, for an hour.
    ///
    /// # Errors
    /// Of kind [`NoClientSideCall`](ErrorKind::NoClientSideCall) for a call without a key. Only a new user message
    /// answers it.
    pub fn approve(&self) -> Result<Decision> {
        self.decide(Verdict::Approved)
    }

    /// Approves the call with other arguments, for an hour.
    ///
    /// They are checked before a call starts: by the schema of the tool, and by the policy and `before_tool` of the tool loop,
    /// which are asked again. If one of them refuses the arguments, the turn ends with an error of kind
    /// [`Approval`](ErrorKind::Approval), and the call waits as before. The `eligible` predicate is not asked.
    ///
    /// # Errors
    /// As [`approve`](Self::approve).
    pub fn approve_with(&self, arguments: Value) -> Result<Decision> {
        self.decide(Verdict::ApprovedWith(arguments))
    }

    /// Denies the call. The model reads the reason.
    ///
    /// # Errors
    /// As [`approve`](Self::approve).
    pub fn deny(&self, reason: impl Into<Text>) -> Result<Decision> {
        let denied = self.decide(Verdict::Denied(reason.into()))?;
        Ok(Decision { expires_at: None, ..denied })
    }

    fn decide(&self, verdict: Verdict) -> Result<Decision> {
        let without_key = || {
            let message = format!(
                "the call of `{}` was stored without its key, so it cannot be approved",
                self.call.name
            );
            Error::new(ErrorKind::NoClientSideCall, message)
        };
        let decision = Decision {
            key: self.key.clone().ok_or_else(without_key)?,
            tool: self.call.name.clone(),
            arguments: self.call.arguments.clone(),
            verdict,
            expires_at: None,
        };
        Ok(decision.valid_for(LIFETIME))
    }
}

impl Decision {
    /// Returns the decision with an end of its validity. A time that no clock can show has no end.
    fn valid_for(self, time: Duration) -> Self {
        Self { expires_at: SystemTime::now().checked_add(time).map(unix_seconds), ..self }
    }

    /// Checks that the decision is about this call and still valid, and that the call was not started.
    ///
    /// # Errors
    /// Of kind [`Approval`](ErrorKind::Approval), or [`CallAlreadyStarted`](ErrorKind::CallAlreadyStarted).
    pub(crate) fn validate(&self, call: &ClientSideCall, now: SystemTime) -> Result<()> {
        let invalid = |problem, text: &str| {
            let message = format!("the decision about the call {} cannot be applied: {text}", self.key);
            Err(Error::new(ErrorKind::Approval { problem }, message))
        };
        if call.started {
            let message = format!(
                "the call {} was started before, so a decision comes too late; resume without it, and the model is asked \
                 to verify the call",
                self.key
            );
            return Err(Error::new(ErrorKind::CallAlreadyStarted, message));
        }
        if self.tool != call.call.name || self.arguments != call.call.arguments {
            let text = "it was made for another tool or other arguments; show the call again";
            return invalid(DecisionProblem::OtherCall, text);
        }
        if self.expires_at.is_some_and(|until| unix_seconds(now) >= until) {
            return invalid(DecisionProblem::Expired, "it has expired; ask again");
        }
        Ok(())
    }
}

fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("key", &self.key)
            .field("tool", &self.tool)
            .field("verdict", &self.verdict)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and reasons are content and must not be logged.
        f.write_str(match self {
            Self::Approved => "Approved",
            Self::ApprovedWith(_) => "ApprovedWith(…)",
            Self::Denied(_) => "Denied(…)",
        })
    }
}

/// The part of a memory that knows which calls a conversation waits for. An advisor returns it from
/// [`AdvisorInfo::pending_calls`](crate::AdvisorInfo::pending_calls), if it also applies the [`Decisions`](crate::Decisions)
/// of a turn.
#[async_trait]
pub trait PendingCalls: Send + Sync {
    /// Returns the calls that the last turn left to its caller and that have no result, in call order.
    ///
    /// # Errors
    /// If the conversation cannot be read.
    async fn list(&self, conversation: &ConversationKey) -> Result<Vec<ClientSideCall>>;
}

/// The part of a tool loop that runs approved calls. An advisor returns it from
/// [`AdvisorInfo::call_runner`](crate::AdvisorInfo::call_runner).
#[async_trait]
pub trait CallRunner: Send + Sync {
    /// Returns the request with which the loop opens its first round, for one that reaches the loop. It is only asked to
    /// find the tools of approved calls, in a chain whose memory is outside the loop.
    ///
    /// # Errors
    /// If the turn cannot begin.
    async fn first_request(&self, request: ChatRequest) -> Result<ChatRequest> {
        Ok(request)
    }

    /// Checks that an approved call can run, before its start is recorded. `request` has the tools of the first round, as
    /// they arrive beside the model.
    ///
    /// # Errors
    /// Of kind [`Approval`](crate::ErrorKind::Approval) if the request has no such tool, or if the arguments do not fit or are
    /// denied.
    async fn validate(&self, request: &ChatRequest, call: &DecidedCall) -> Result<()>;

    /// Runs the approved calls and returns one result per decided call, in their order. A call that is denied, fails or
    /// cannot run has an error result.
    ///
    /// `request` is that of the turn which continues after the calls: it has the turn, the conversation, and the tools of
    /// the first round, as they arrive beside the model.
    ///
    /// # Cancellation
    /// Dropping the future drops the tools.
    ///
    /// # Errors
    /// If the execution itself fails.
    async fn run(&self, request: &ChatRequest, calls: Vec<DecidedCall>) -> Result<Vec<ToolResult>>;
}

/// A call about which a person has decided. If it is approved, its start is recorded before it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedCall {
    /// The key of the call, which names the turn that made it.
    pub key: CallKey,
    /// The call as the model wrote it.
    pub call: ToolCall,
    /// The decision.
    pub verdict: Verdict,
    /// The [digest](crate::ToolDefinition::digest) of the tool's definition when the call was asked about, if known. An
    /// approval is only for a tool of this definition.
    pub definition: Option<Text>,
}

impl DecidedCall {
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self.verdict, Verdict::Denied(_))
    }
}

#[cfg(test)]
mod tests {
    use message_aggregator::ToolCall;
    use serde_json::json;

    use super::*;
    use crate::TurnId;

    fn call(arguments: &str) -> ClientSideCall {
        let key = CallKey::new(TurnId::new("t").unwrap(), 1, 0);
        let call = ToolCall::new("c1", "pay", arguments);
        ClientSideCall { key: Some(key), call, started: false, definition: None }
    }

    /// Whatever a person decides, it is bound in the same way.
    #[test]
    fn every_verdict_is_bound_to_its_call_and_ends_at_its_time() {
        let asked = call("{\"cents\":1}");
        let verdicts = [
            asked.approve().unwrap(),
            asked.approve_with(json!({"cents": 2})).unwrap(),
            asked.deny("too much").unwrap(),
        ];
        let (now, lifetime) = (unix_seconds(SystemTime::now()), LIFETIME.as_secs());
        for approval in &verdicts[..2] {
            let left = approval.expires_at.unwrap() - now;
            assert!((lifetime - 60..=lifetime).contains(&left), "{approval:?} ends after {left} s");
            assert_eq!(approval.clone().valid_for(Duration::MAX).expires_at, None);
        }
        assert_eq!(verdicts[2].expires_at, None, "a denial stays");
        let without = ClientSideCall { key: None, ..asked.clone() };
        assert_eq!(without.approve().unwrap_err().kind(), ErrorKind::NoClientSideCall);
        let problem_of = |made: &Decision, call: &ClientSideCall, second: u64| {
            let at = UNIX_EPOCH + Duration::from_secs(second);
            made.validate(call, at).map_err(|error| error.kind())
        };
        let refused = |problem| Err(ErrorKind::Approval { problem });
        for made in verdicts {
            let made = Decision { expires_at: Some(1_000), ..made };
            assert_eq!(problem_of(&made, &asked, 999), Ok(()), "{made:?}");
            for late in [1_000, 1_001, u64::from(u32::MAX)] {
                assert_eq!(problem_of(&made, &asked, late), refused(DecisionProblem::Expired), "{made:?}");
            }
            let mut other_tool = asked.clone();
            other_tool.call.name = "refund".into();
            for other in [other_tool, call("{\"cents\":2}")] {
                assert_eq!(problem_of(&made, &other, 999), refused(DecisionProblem::OtherCall), "{made:?}");
            }
            let mut started = asked.clone();
            started.started = true;
            assert_eq!(problem_of(&made, &started, 999), Err(ErrorKind::CallAlreadyStarted), "{made:?}");
        }
    }

    #[test]
    fn decision_and_call_have_a_json_form_and_no_content_in_debug() {
        let made = call("{\"cents\":1}").approve_with(json!({"cents": 2})).unwrap();
        let made = Decision { expires_at: Some(7), ..made };
        let form = json!({
            "key": "t/1/0", "tool": "pay", "arguments": "{\"cents\":1}",
            "verdict": {"approved_with": {"cents": 2}}, "expires_at": 7
        });
        assert_eq!(serde_json::to_value(&made).unwrap(), form);
        assert_eq!(serde_json::from_value::<Decision>(form).unwrap(), made);
        let open = json!({
            "key": "t/1/0", "call": {"id": "c1", "name": "pay", "arguments": "{}"}, "started": false
        });
        assert_eq!(serde_json::to_value(call("{}")).unwrap(), open);
        assert_eq!(serde_json::from_value::<ClientSideCall>(open).unwrap(), call("{}"));
        let debug = format!("{made:?} {:?}", call("{}").deny("secret").unwrap());
        assert!(!debug.contains("cents") && !debug.contains("secret"), "{debug}");
    }
}
