//! Applies the decisions of a turn when it begins: starts, approved calls, results.

use std::collections::HashSet;

use advisor_core::{
    AdvisorChain, CallKey, CallStart, ChatRequest, ClientSideCall, DecidedCall, Decision, Decisions, Error,
    ErrorKind, Message, Result, ToolResult, ToolSet, TurnId, VERIFY_BEFORE_RETRYING, Verdict,
};
use conversation_store::{Entry, EntryKind, ReadRange, same_turn};

use crate::turn::TurnMemoryState;
use crate::turn::client_side::{LastTurn, append_starts};
use crate::turn::start::{Start, StartOutcome};
use crate::turn::stored_turn::used;

/// The results of the decided calls of a turn.
#[derive(Debug)]
pub(crate) struct DecidedResults {
    /// The turn that asked, if the calls ran in this attempt. The results belong to its calls.
    pub(super) asked: Option<TurnId>,
    pub(super) results: Vec<Message>,
}

/// The decisions of a turn that holds the conversation and has not read it.
pub(super) struct Deciding<'a> {
    pub(super) memory: &'a TurnMemoryState,
    pub(super) decisions: &'a Decisions,
    pub(super) request: &'a ChatRequest,
}

impl Deciding<'_> {
    /// Returns the results of the decided calls, which are in front of the turn's input.
    pub(super) async fn apply(&self, next: &AdvisorChain) -> Result<DecidedResults> {
        if self.memory.fork_point.is_some() {
            return Err(Error::configuration(
                "a turn with decisions continues the conversation: leave its fork point out",
            ));
        }
        let TurnMemoryState { store, registry, key, .. } = self.memory;
        let last = LastTurn::load(&**store, registry, key).await?;
        if let Some(results) = self.stored_results(&last).await? {
            return Ok(DecidedResults { asked: None, results });
        }
        let (first, decided) = self.check_start(&last).await?;
        let tools = self.decisions.resolve(first, next, &decided).await?;
        let asked = last.entries.first().map(|entry| entry.turn.clone());
        Ok(DecidedResults { asked, results: self.run(tools).await? })
    }

    /// Checks that the turn can begin with results, before a call runs. Returns the request of its first round, with empty
    /// results, and the decided calls.
    ///
    /// # Errors
    /// Those of the decisions, and of a turn that would be too large even with empty results.
    async fn check_start(&self, last: &LastTurn) -> Result<(ChatRequest, Vec<DecidedCall>)> {
        let Plan { decided, lost } = self.plan(last)?;
        let calls = decided.iter().map(|call| &call.call).chain(lost.iter().map(|open| &open.call));
        let results = calls.map(|call| Message::tool(ToolResult::new(call, Vec::new())));
        let (system, said) = self.request.messages.split_system();
        let said: Vec<_> = results.chain(said).collect();
        let (planned, _) = Start::new(self.memory, &said).read().await?;
        let messages = match planned {
            StartOutcome::Asking(mut plan) => plan.prompt.messages(system),
            StartOutcome::Answered(_) => self.request.messages.clone(),
        };
        Ok((ChatRequest { messages, ..self.request.clone() }, decided))
    }

    /// Records the starts of the approved calls and runs them.
    async fn run(&self, tools: ToolSet) -> Result<Vec<Message>> {
        let plan = |last: &LastTurn| {
            let plan = self.plan(last)?;
            Ok((plan.starts(), plan))
        };
        let Plan { decided, lost } = append_starts(self.memory, plan).await?;
        let positions: Vec<_> = decided.iter().map(|call| call.key.position).collect();
        let ran = self.decisions.run(self.request, decided, tools).await?;
        let lost = lost.into_iter().map(|open| {
            let position = open.key.map_or(u32::MAX, |key| key.position);
            (position, Message::tool(ToolResult::error(&open.call, VERIFY_BEFORE_RETRYING)))
        });
        // In call order, since calls may have equal ids.
        let mut results: Vec<_> = positions.into_iter().zip(ran).chain(lost).collect();
        results.sort_by_key(|(position, _)| *position);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }

    /// Returns the results with which this turn was begun when it was submitted before.
    async fn stored_results(&self, last: &LastTurn) -> Result<Option<Vec<Message>>> {
        let TurnMemoryState { store, registry, key, turn, .. } = self.memory;
        let (open, decisions) = (last.client_side_calls(), self.decisions);
        let is_own = last.entries.first().is_some_and(|entry| entry.turn == *turn);
        let names_own = decisions.iter().any(|decision| decision.key.turn == *turn);
        let waits = |key| open.iter().any(|call| call.key.as_ref() == Some(key));
        let all_wait = !open.is_empty() && decisions.iter().all(|decision| waits(&decision.key));
        if names_own || (all_wait && !is_own) {
            return Ok(None);
        }
        let log = registry.load(&**store, key, None, ReadRange::All, |all| (all.entries, true)).await?;
        let Some(from) = log.iter().position(|entry| entry.turn == *turn) else { return Ok(None) };
        let (before, own) = log.split_at(from);
        // Collected once: a request may have thousands of decisions.
        let asked: HashSet<_> = before.iter().map(|entry| &entry.turn).collect();
        let started: HashSet<_> = before.iter().filter_map(start_in).collect();
        let was_applied = |decision: &Decision| {
            let is_approved = !matches!(decision.verdict, Verdict::Denied(_));
            asked.contains(&decision.key.turn) && started.contains(&decision.key) == is_approved
        };
        if !decisions.iter().all(was_applied) {
            return Err(used(turn, "was begun with other decisions"));
        }
        // The results in front of the turn, without those that the request has.
        let own = own.chunk_by(same_turn).next().unwrap_or_default();
        let messages = own.iter().map_while(|entry| entry.kind.as_message());
        let results = messages.map_while(|message| Some((message, message.tool_result()?)));
        let missing = results.filter(|(_, result)| !self.brings(&result.call_id));
        Ok(Some(missing.map(|(message, _)| message.clone()).collect()))
    }

    /// Checks whether the request has a result for a call.
    fn brings(&self, call_id: &str) -> bool {
        let results = self.request.messages.iter().filter_map(Message::tool_result);
        results.into_iter().any(|given| &*given.call_id == call_id)
    }

    fn plan(&self, last: &LastTurn) -> Result<Plan> {
        let (decisions, request) = (self.decisions, self.request);
        let is_decided =
            |call: &ClientSideCall| decisions.iter().any(|decision| Some(&decision.key) == call.key.as_ref());
        // The caller may still run a started call of a client-side tool.
        let is_of_caller = |call: &ClientSideCall| {
            request.tools.find(&call.call.name).is_some_and(|tool| tool.definition().client_side)
        };
        let is_lost = |call: &ClientSideCall| {
            let has_answer = is_decided(call) || self.brings(&call.call.id);
            call.started && !has_answer && !is_of_caller(call)
        };
        let (lost, waiting): (Vec<_>, _) = last.client_side_calls().into_iter().partition(is_lost);
        let decided = decisions.check(waiting, request)?;
        if decided.is_empty() && lost.is_empty() && request.messages.split_system().1.is_empty() {
            let message = "there are no decisions and no input, and the conversation waits for no call";
            return Err(Error::new(ErrorKind::NoClientSideCall, message));
        }
        Ok(Plan { decided, lost })
    }
}

/// The calls that a conversation waits for, as a turn with decisions finds them.
struct Plan {
    decided: Vec<DecidedCall>,
    /// The calls that were started before, and have neither a decision nor a result. They may have run.
    lost: Vec<ClientSideCall>,
}

impl Plan {
    /// Returns the starts of the approved calls.
    fn starts(&self) -> Vec<CallStart> {
        let approved = self.decided.iter().filter(|call| !matches!(call.verdict, Verdict::Denied(_)));
        approved.map(|call| CallStart::new(call.key.clone(), call.call.id.clone())).collect()
    }
}

fn start_in(entry: &Entry) -> Option<&CallKey> {
    match &entry.kind {
        EntryKind::CallStarted(start) => Some(&start.key),
        _ => None,
    }
}
