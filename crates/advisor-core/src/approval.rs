//! Calls that wait for their caller, what a person decides about them, and how their turn applies the decisions.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use message_aggregator::{Message, Text, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    AdvisorChain, CallKey, ChatRequest, ConversationKey, DecisionProblem, Error, ErrorKind, Result, ToolSet,
};

/// A call that its turn left to the caller, and that has no result yet.
///
/// It has a JSON form, so that a person in another process sees it and decides.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
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

impl ClientSideCall {
    /// Creates a call that was not started.
    #[must_use]
    pub fn new(key: Option<CallKey>, call: ToolCall) -> Self {
        Self { key, call, started: false, definition: None }
    }
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
    /// They are checked before the call runs. If they do not fit the schema of the tool, the turn ends with an error of kind
    /// [`Approval`](ErrorKind::Approval), and the call waits as before. The policy and `before_tool` of the tool loop are
    /// asked again and may deny them; its `eligible` predicate is not.
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
    /// Sets how long the decision is valid from now on. A time that no clock can show has no end.
    #[must_use]
    pub fn valid_for(self, time: Duration) -> Self {
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
    /// Of kind [`Approval`](crate::ErrorKind::Approval) if the request has no such tool, or if the arguments do not fit.
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
#[non_exhaustive]
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
    /// Creates a decided call.
    #[must_use]
    pub fn new(key: CallKey, call: ToolCall, verdict: Verdict) -> Self {
        Self { key, call, verdict, definition: None }
    }

    /// Checks whether the decision is a denial.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self.verdict, Verdict::Denied(_))
    }

    /// Sets the digest of the tool's definition when the call was asked about.
    #[must_use]
    pub fn with_definition(self, definition: Option<Text>) -> Self {
        Self { definition, ..self }
    }
}

/// The decisions of a turn that continues after calls that wait ([`Turn::decisions`](crate::Turn::decisions)), made by
/// [`Prompt::resume`](crate::Prompt::resume).
///
/// The memory of the turn applies them when the turn begins, while it holds the conversation. It
/// [checks](Self::check) them against the calls that wait, [finds](Self::resolve) the tools, records the starts of
/// approved calls, and [runs](Self::run) the calls. Then it stores the results in front of the turn's input, and [notes](Self::note_stored) that. A call that was started
/// before and has no decision is lost: memory leaves it out of the check, and gives it a result that asks to verify it.
#[derive(Clone)]
pub struct Decisions {
    decisions: Arc<[Decision]>,
    /// The tool loop of the chain, which runs approved calls.
    runner: Arc<dyn CallRunner>,
    progress: Arc<watch::Sender<Progress>>,
}

/// The tools for the decided calls of a turn, as its first request has them beside the model. [`Decisions::resolve`] finds
/// them.
#[derive(Debug, Clone)]
pub struct ResolvedTools(ToolSet);

/// The progress of a turn with its decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// No decision is applied.
    Waiting,
    /// The decisions are checked, and no call runs yet. Starts may be recorded.
    Checked,
    /// Approved calls run, or have run.
    Running,
    /// The results are stored.
    Stored,
}

impl Decisions {
    /// Creates the decisions of a turn whose approved calls are run by `runner`.
    pub(crate) fn new(decisions: Vec<Decision>, runner: Arc<dyn CallRunner>) -> Self {
        let progress = Arc::new(watch::Sender::new(Progress::Waiting));
        Self { decisions: decisions.into(), runner, progress }
    }

    /// Returns the decisions, as they were given.
    #[must_use]
    pub fn as_slice(&self) -> &[Decision] {
        &self.decisions
    }

    /// Checks the decisions against the calls that the conversation waits for, in call order. Each of these calls needs
    /// a decision, or a result in the request. Returns the decided calls in call order.
    ///
    /// # Errors
    /// - [`Approval`](ErrorKind::Approval) for a decision that cannot be applied, and for an approved call that cannot
    ///   run. Also for a call with two decisions, with a decision and a result, or with neither.
    /// - [`CallAlreadyStarted`](ErrorKind::CallAlreadyStarted) for a call that was started.
    /// - [`NoClientSideCall`](ErrorKind::NoClientSideCall) for a decision or a result without such a call.
    pub fn check(&self, waiting: Vec<ClientSideCall>, request: &ChatRequest) -> Result<Vec<DecidedCall>> {
        let now = SystemTime::now();
        let mut by_key = self.by_key()?;
        let keys: HashSet<_> = waiting.iter().filter_map(|open| open.key.as_ref()).collect();
        not_waiting(by_key.keys().filter(|key| !keys.contains(key)).min())?;
        let given = request.messages.iter().filter_map(Message::tool_result);
        let mut given: Vec<_> = given.map(|result| &result.call_id).collect();
        let mut decided = Vec::new();
        for open in waiting {
            let answer = given.iter().position(|id| **id == open.call.id).map(|place| given.remove(place));
            let decision = open.key.as_ref().and_then(|key| by_key.remove(key));
            match (decision, answer) {
                (None, Some(_)) => {}
                (Some(decision), None) => {
                    decision.validate(&open, now)?;
                    decided.push(decided_call(decision, open, request)?);
                }
                (Some(_), Some(_)) => {
                    let text = "has a decision and a result; send one of them";
                    return Err(refused(DecisionProblem::WithResult, &open, text));
                }
                (None, None) => {
                    let text = "waits without a decision; decide about all calls";
                    return Err(refused(DecisionProblem::Missing, &open, text));
                }
            }
        }
        not_waiting(given.first())?;
        Ok(decided)
    }

    /// Finds the tools for the decided calls: those that `first`, the request of the first round, has where it arrives beside
    /// the model. `next` is the chain inside memory. Checks that the approved calls can run with them.
    ///
    /// The results of the calls are not known yet, so `first` has others in their place.
    ///
    /// # Ordering
    /// `first` passes all advisors inside memory, and is dropped beside the model ([`Turn::resolves_tools`](crate::Turn)).
    /// Without an approved call, it passes none.
    ///
    /// # Errors
    /// - [`Approval`](ErrorKind::Approval) for an approved call that cannot run.
    /// - Those of the advisors, and [`Configuration`](ErrorKind::Configuration) if one answers in place of the model and
    ///   hides the tools.
    pub async fn resolve(
        &self,
        first: ChatRequest,
        next: &AdvisorChain,
        decided: &[DecidedCall],
    ) -> Result<ResolvedTools> {
        let tools = match decided.iter().all(DecidedCall::is_denied) {
            true => first.tools.clone(),
            false => next.resolve_tools(first.clone()).await?,
        };
        let first = first.with_tools(tools);
        for call in decided {
            if !call.is_denied() {
                self.runner.validate(&first, call).await?;
            }
        }
        self.progress.send_replace(Progress::Checked);
        Ok(ResolvedTools(first.tools))
    }

    /// Runs the approved calls, whose starts are recorded, and returns one result per decided call, in their order.
    ///
    /// # Cancellation
    /// Dropping the future drops the tools.
    ///
    /// # Errors
    /// If the execution itself fails. A tool that fails has an error result.
    pub async fn run(
        &self,
        request: &ChatRequest,
        decided: Vec<DecidedCall>,
        tools: ResolvedTools,
    ) -> Result<Vec<Message>> {
        let count = decided.len();
        if decided.iter().any(|call| !call.is_denied()) {
            self.progress.send_replace(Progress::Running);
        }
        let request = request.clone().with_tools(tools.0);
        let results = self.runner.run(&request, decided).await?;
        if results.len() != count {
            return Err(Error::new(ErrorKind::Tool, "the runner gave other results than one per call"));
        }
        Ok(results.into_iter().map(Message::tool).collect())
    }

    /// Notes that the results are stored. A memory calls it once the turn has begun.
    pub fn note_stored(&self) {
        self.progress.send_replace(Progress::Stored);
    }

    /// Checks whether the results are stored. If the turn ends before, an advisor outside memory has ended it or it has
    /// failed. The decisions may be sent again then, unless an approved call was started.
    #[must_use]
    pub fn are_stored(&self) -> bool {
        *self.progress.borrow() == Progress::Stored
    }

    /// Waits while approved calls run, until their results are stored. Returns at once if none runs. A tool loop waits so
    /// before it ends a turn whose time is over.
    pub async fn settled(&self) {
        let mut progress = self.progress.subscribe();
        // It does not fail: this value keeps the sender.
        let _ =
            progress.wait_for(|progress| !matches!(progress, Progress::Checked | Progress::Running)).await;
    }

    /// Checks whether the decisions are used: approved calls have started, or results are stored. Another turn with the
    /// same decisions is refused.
    pub(crate) fn are_used(&self) -> bool {
        matches!(*self.progress.borrow(), Progress::Running | Progress::Stored)
    }

    /// Returns the decisions by their calls.
    fn by_key(&self) -> Result<HashMap<CallKey, Decision>> {
        let mut by_key = HashMap::new();
        for decision in self.decisions.iter().cloned() {
            if let Some(other) = by_key.insert(decision.key.clone(), decision) {
                let message = format!("there are two decisions about the call {}; send one", other.key);
                return Err(Error::new(ErrorKind::Approval { problem: DecisionProblem::Duplicate }, message));
            }
        }
        Ok(by_key)
    }
}

/// Returns the call with its decision, if it is one of an earlier turn.
fn decided_call(decision: Decision, open: ClientSideCall, request: &ChatRequest) -> Result<DecidedCall> {
    if decision.key.turn == *request.turn.id() {
        let message = "the turn that continues needs another id than the one that asked";
        return Err(Error::new(ErrorKind::Approval { problem: DecisionProblem::SameTurn }, message));
    }
    Ok(DecidedCall::new(decision.key, open.call, decision.verdict).with_definition(open.definition))
}

fn refused(problem: DecisionProblem, open: &ClientSideCall, text: &str) -> Error {
    Error::new(ErrorKind::Approval { problem }, format!("a call of `{}` {text}", open.call.name))
}

/// Refuses a call that the conversation does not wait for, if there is one.
fn not_waiting(call: Option<impl fmt::Display>) -> Result<()> {
    let Some(call) = call else { return Ok(()) };
    let message = format!("the conversation does not wait for the call {call}; list its pending calls");
    Err(Error::new(ErrorKind::NoClientSideCall, message))
}

impl fmt::Debug for Decisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.decisions.iter()).finish()
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
        ClientSideCall::new(Some(key), ToolCall::new("c1", "pay", arguments))
    }

    #[test]
    fn decision_is_bound_to_its_call_and_time() {
        let now = SystemTime::now();
        let made = call("{\"cents\":1}").approve().unwrap();
        assert!(made.validate(&call("{\"cents\":1}"), now).is_ok());
        for other in ["{\"cents\":2}", "{ \"cents\":1}"] {
            let kind = made.validate(&call(other), now).unwrap_err().kind();
            assert_eq!(kind, ErrorKind::Approval { problem: DecisionProblem::OtherCall });
        }
        let late = made.validate(&call("{\"cents\":1}"), now + LIFETIME + Duration::from_secs(1));
        assert!(late.unwrap_err().to_string().contains("expired"));
        assert_eq!(made.clone().valid_for(Duration::MAX).expires_at, None);
        let mut started = call("{\"cents\":1}");
        started.started = true;
        let error = made.validate(&started, now).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CallAlreadyStarted);
        assert!(error.to_string().contains("resume without it"), "{error}");
        let short = made.clone().valid_for(Duration::ZERO);
        assert!(short.validate(&call("{\"cents\":1}"), now).is_err());
        let denied = call("{}").deny("too much").unwrap();
        assert!(denied.validate(&call("{}"), now + 100 * LIFETIME).is_ok(), "a denial stays");
        let mut without = call("{}");
        without.key = None;
        assert_eq!(without.approve().unwrap_err().kind(), ErrorKind::NoClientSideCall);
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
        }
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
