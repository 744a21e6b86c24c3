//! Applies the decisions of a turn when it begins: starts, approved calls, results.

use std::collections::HashSet;

use advisor_core::{
    AdvisorChain, CallKey, CallStart, ChatRequest, ClientSideCall, DecidedCall, Decision, Decisions, Error,
    ErrorKind, Message, Record, ResolvedTools, Result, Step, ToolResult, Verdict,
};
use conversation_store::{Entry, EntryKind, ReadRange, Snapshot, StoreError, same_turn};

use crate::OnBusy;
use crate::transcript::repair::has_calls;
use crate::turn::TurnMemoryState;
use crate::turn::client_side::decided_results::DecidedResults;
use crate::turn::client_side::last_turn::{LastTurn, last_with_messages};
use crate::turn::fork_point::Extent;
use crate::turn::resubmitted::used;
use crate::turn::start_plan::{StartOutcome, StartPlan};

/// The calls that a conversation waits for, as a turn with decisions finds them.
struct Plan {
    decided: Vec<DecidedCall>,
    /// The calls that were started before, and have neither a decision nor a result. They may have run.
    lost: Vec<ClientSideCall>,
}

/// Applies the decisions of a turn, while it holds the conversation and before it reads it.
impl TurnMemoryState {
    /// Checks whether the turn has decisions that were not applied. Nothing is stored then, so that the same calls can be
    /// decided later.
    pub(crate) fn has_undecided_calls(&self) -> bool {
        self.decisions.is_some() && self.results.get().is_none()
    }

    /// Returns the policy for a conversation in which another turn runs. Decisions do not interrupt it, since it may run the
    /// same calls.
    pub(crate) fn on_busy_at_start(&self) -> OnBusy {
        match self.on_busy {
            OnBusy::InterruptPrevious if self.decisions.is_some() => OnBusy::Reject,
            on_busy => on_busy,
        }
    }

    /// Returns the results of the decided calls, if they ran.
    pub(crate) fn decided_results(&self) -> impl Iterator<Item = Message> {
        self.results.get().into_iter().flat_map(|decided| decided.results.iter().cloned())
    }

    /// Notes that the results of the decided calls are stored.
    pub(crate) fn note_results_stored(&self) {
        if let Some(decisions) = &self.decisions {
            decisions.note_stored();
        }
    }

    /// Handles a record of a turn whose decisions were not applied: an advisor outside memory has ended it or answered. It
    /// stores nothing.
    ///
    /// # Errors
    /// For calls. They must not run before the decided ones.
    pub(crate) async fn record_undecided(&self, record: &Record) -> Result<()> {
        let goes_on = match &record.step {
            Step::Answer => record.messages.iter().any(has_calls),
            Step::Results | Step::Started(_) => true,
            Step::End(_) => {
                self.release_lease().await;
                false
            }
            _ => false,
        };
        if goes_on {
            let message = "an advisor outside memory answered with calls, before the decisions about earlier ones were \
                           applied; let it pass turns with `Decisions` on";
            return Err(Error::configuration(message));
        }
        Ok(())
    }

    /// Sets the results of the decided calls, which are in front of the turn's input. If they are set already, does
    /// nothing: the calls run once, however often the turn tries to begin.
    pub(crate) async fn apply_decisions(
        &self,
        decisions: &Decisions,
        request: &ChatRequest,
        next: &AdvisorChain,
    ) -> Result<()> {
        if self.results.get().is_some() {
            return Ok(());
        }
        if self.fork_point.is_some() {
            return Err(Error::configuration(
                "a turn with decisions continues the conversation: leave its fork point out",
            ));
        }
        let last = LastTurn::load(&*self.store, &self.registry, &self.measure.texts, &self.key).await?;
        let decided = match self.stored_results(&last, decisions, request).await? {
            Some(results) => DecidedResults { asked: None, results },
            None => DecidedResults {
                asked: last.entries.first().map(|entry| entry.turn.clone()),
                results: {
                    let (first, decided) = self.check_start(&last, decisions, request).await?;
                    let tools = decisions.resolve(first, next, &decided).await?;
                    self.apply(decisions, request, tools).await?
                },
            },
        };
        request.turn.begin_after(&decided.results);
        self.results.get_or_init(|| decided);
        Ok(())
    }

    /// Checks that the conversation still continues the turn that asked: results belong to its calls.
    ///
    /// # Errors
    /// If another turn has begun since, which a store without leases allows.
    pub(crate) fn check_asked(&self, loaded: &Snapshot) -> Result<()> {
        let Some(asked) = self.results.get().and_then(|decided| decided.asked.as_ref()) else {
            return Ok(());
        };
        let last = last_with_messages(&loaded.entries).and_then(<[Entry]>::first);
        match last {
            Some(last) if last.turn != *asked && last.turn != self.turn => {
                Err(StoreError::Conflict { current: loaded.version }.into())
            }
            _ => Ok(()),
        }
    }

    /// Checks that the turn can begin with results, before a call runs. Returns the request of its first round, with empty
    /// results, and the decided calls.
    ///
    /// # Errors
    /// Those of the decisions, and of a turn that would be too large even with empty results.
    async fn check_start(
        &self,
        last: &LastTurn,
        decisions: &Decisions,
        request: &ChatRequest,
    ) -> Result<(ChatRequest, Vec<DecidedCall>)> {
        let Plan { decided, lost } = Plan::new(last.client_side_calls(), decisions, request)?;
        let calls = decided.iter().map(|call| &call.call).chain(lost.iter().map(|open| &open.call));
        let results = calls.map(|call| Message::tool(ToolResult::new(call, Vec::new())));
        let (system, said) = request.messages.split_system();
        let said: Vec<_> = results.chain(said).collect();
        let loaded = self.read(&said, Extent::Whole).await?;
        let planned = StartPlan::plan(&self.turn, said, loaded, &self.measure)?;
        let messages = match planned {
            StartOutcome::Asking(plan) => plan.prompt(&system, &self.measure).messages(system),
            StartOutcome::Answered(_) => request.messages.clone(),
        };
        Ok((request.clone().with_messages(messages), decided))
    }

    async fn apply(
        &self,
        decisions: &Decisions,
        request: &ChatRequest,
        tools: ResolvedTools,
    ) -> Result<Vec<Message>> {
        let plan = |last: &LastTurn| {
            let plan = Plan::new(last.client_side_calls(), decisions, request)?;
            Ok((plan.starts(), plan))
        };
        let Plan { decided, lost } = self.append_starts(plan).await?;
        let positions: Vec<_> = decided.iter().map(|call| call.key.position).collect();
        let ran = decisions.run(request, decided, tools).await?;
        let lost = lost.into_iter().map(|open| {
            let text = self.measure.texts.verify_before_retrying.clone();
            let position = open.key.map_or(u32::MAX, |key| key.position);
            (position, Message::tool(ToolResult::error(&open.call, text)))
        });
        // In call order, since calls may have equal ids.
        let mut results: Vec<_> = positions.into_iter().zip(ran).chain(lost).collect();
        results.sort_by_key(|(position, _)| *position);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }

    /// Returns the results with which this turn was begun when it was submitted before.
    async fn stored_results(
        &self,
        last: &LastTurn,
        decisions: &Decisions,
        request: &ChatRequest,
    ) -> Result<Option<Vec<Message>>> {
        let open = last.client_side_calls();
        let is_own = last.entries.first().is_some_and(|entry| entry.turn == self.turn);
        let names_own = decisions.as_slice().iter().any(|decision| decision.key.turn == self.turn);
        let waits = |key| open.iter().any(|call| call.key.as_ref() == Some(key));
        let all_wait = !open.is_empty() && decisions.as_slice().iter().all(|decision| waits(&decision.key));
        if names_own || (all_wait && !is_own) {
            return Ok(None);
        }
        let log =
            self.store.load(&self.key, ReadRange::All).await.map_err(StoreError::into_load_error)?.entries;
        let Some(from) = log.iter().position(|entry| entry.turn == self.turn) else { return Ok(None) };
        let (before, own) = log.split_at(from);
        // Collected once: a request may have thousands of decisions.
        let asked: HashSet<_> = before.iter().map(|entry| &entry.turn).collect();
        let started: HashSet<_> = before.iter().filter_map(start_in).collect();
        let was_applied = |decision: &Decision| {
            let is_approved = !matches!(decision.verdict, Verdict::Denied(_));
            asked.contains(&decision.key.turn) && started.contains(&decision.key) == is_approved
        };
        if !decisions.as_slice().iter().all(was_applied) {
            return Err(used(&self.turn, "was begun with other decisions"));
        }
        let own = own.chunk_by(same_turn).next().unwrap_or_default();
        Ok(Some(leading_results(own, request)))
    }
}

fn start_in(entry: &Entry) -> Option<&CallKey> {
    match &entry.kind {
        EntryKind::CallStarted(start) => Some(&start.key),
        _ => None,
    }
}

/// Returns the results in front of a stored turn, without those that the request has.
fn leading_results(own: &[Entry], request: &ChatRequest) -> Vec<Message> {
    let results = own
        .iter()
        .map_while(|entry| entry.kind.as_message().filter(|message| message.tool_result().is_some()));
    results
        .filter(|result| !has_result(request, result.tool_result().map(|result| &*result.call_id)))
        .cloned()
        .collect()
}

fn has_result(request: &ChatRequest, call_id: Option<&str>) -> bool {
    request.messages.iter().filter_map(Message::tool_result).any(|given| Some(&*given.call_id) == call_id)
}

impl Plan {
    fn new(open: Vec<ClientSideCall>, decisions: &Decisions, request: &ChatRequest) -> Result<Self> {
        let is_decided = |call: &ClientSideCall| {
            decisions.as_slice().iter().any(|decision| Some(&decision.key) == call.key.as_ref())
        };
        // The caller may still run a started call of a client-side tool.
        let is_of_caller = |call: &ClientSideCall| {
            request.tools.find(&call.call.name).is_some_and(|tool| tool.definition().client_side)
        };
        let is_lost = |call: &ClientSideCall| {
            let has_answer = is_decided(call) || has_result(request, Some(&*call.call.id));
            call.started && !has_answer && !is_of_caller(call)
        };
        let (lost, waiting): (Vec<_>, _) = open.into_iter().partition(is_lost);
        let decided = decisions.check(waiting, request)?;
        if decided.is_empty() && lost.is_empty() && request.messages.split_system().1.is_empty() {
            let message = "there are no decisions and no input, and the conversation waits for no call";
            return Err(Error::new(ErrorKind::NoClientSideCall, message));
        }
        Ok(Self { decided, lost })
    }

    /// Returns the starts of the approved calls.
    fn starts(&self) -> Vec<CallStart> {
        let approved = self.decided.iter().filter(|call| !call.is_denied());
        approved.map(|call| CallStart::new(call.key.clone(), call.call.id.clone())).collect()
    }
}
