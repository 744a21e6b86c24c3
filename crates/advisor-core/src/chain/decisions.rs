//! `Decisions` of a turn: checks them against the calls that wait, finds their tools, and runs approved calls.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::SystemTime;

use message_aggregator::Message;
use tokio::sync::watch;

use crate::{
    AdvisorChain, CallKey, CallRunner, ChatRequest, ClientSideCall, DecidedCall, Decision, DecisionProblem,
    Error, ErrorKind, Result, ToolSet, Turn,
};

/// The decisions of a turn that continues after calls that wait ([`Turn::decisions`](crate::Turn::decisions)), made by
/// [`Prompt::resume`](crate::Prompt::resume). It dereferences to the decisions, as they were given.
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
    ) -> Result<ToolSet> {
        let tools = match decided.iter().all(DecidedCall::is_denied) {
            true => first.tools.clone(),
            false => next.resolve_tools(first.clone()).await?,
        };
        let first = ChatRequest { tools, ..first };
        for call in decided {
            if !call.is_denied() {
                self.runner.validate(&first, call).await?;
            }
        }
        self.progress.send_replace(Progress::Checked);
        Ok(first.tools)
    }

    /// Runs the approved calls, whose starts are recorded, with the tools that [`resolve`](Self::resolve) found. Returns one result per decided call, in their order.
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
        tools: ToolSet,
    ) -> Result<Vec<Message>> {
        let count = decided.len();
        if decided.iter().any(|call| !call.is_denied()) {
            self.progress.send_replace(Progress::Running);
        }
        let request = ChatRequest { tools, ..request.clone() };
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
    let Decision { key, verdict, .. } = decision;
    Ok(DecidedCall { key, call: open.call, verdict, definition: open.definition })
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

impl Deref for Decisions {
    type Target = [Decision];

    fn deref(&self) -> &[Decision] {
        &self.decisions
    }
}

impl fmt::Debug for Decisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.decisions.iter()).finish()
    }
}

impl Turn {
    // They are an extension, since they run tools, which know their turn.
    /// Returns the decisions about calls that wait, of a turn that continues after them
    /// ([`Prompt::resume`](crate::Prompt::resume)).
    #[must_use]
    pub fn decisions(&self) -> Option<Decisions> {
        self.extensions().get()
    }
}
