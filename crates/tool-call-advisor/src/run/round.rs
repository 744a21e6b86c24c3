//! The step after a round: the hook steers the answer, the decision is made, calls are planned and run.

use std::sync::Arc;

use advisor_core::{
    CallKey, ChatResponse, FinishReason, Limit, Message, Record, Result, Step, Tool, ToolCall, ToolChoice,
    ToolSet,
};
use serde_json::Value;
use tokio::time::timeout_at;

use crate::execution::ToolEvents;
use crate::not_started::NotStarted;
use crate::plan::{Fate, PlannedCall, ToolPlan};
use crate::plan::{Room, prepare_in_time};
use crate::run::decide::{AfterRound, Runner, Weighed, decide};
use crate::run::end::direct_blocks;
use crate::run::history::has_calls;
use crate::run::same_calls::Fingerprint;
use crate::run::stream::{Next, Outcome};
use crate::run::{LoopRun, state_bounds};
use crate::{CallDecision, OnLimit, ReadyCall, ToolBatch};

/// The step after a round.
impl LoopRun {
    /// Decides the action after a round. All advisors inside the loop have completed for the answer.
    pub(super) async fn after_round(&mut self, answer: ChatResponse) -> Result<Outcome> {
        if let Some(usage) = answer.usage.as_ref() {
            self.usage.get_or_insert_default().add(usage);
        }
        match self.steer(&answer).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => Ok(self.abandon(&answer, error).await),
        }
    }

    async fn steer(&mut self, answer: &ChatResponse) -> Result<Outcome> {
        if self.request.turn.facts(|facts| facts.answered_before) {
            return self.end_answered_before(answer).await;
        }
        let steered = self.config.hooks.after_round(answer.clone(), self.counts.rounds).await?;
        let tools = self.tools_of(answer.round());
        let weighed = self.weighed(&steered, &tools);
        let limit = self.limit_reached();
        match decide(&steered, &weighed, limit.as_ref(), &self.counts, &self.limits) {
            AfterRound::Finish if has_calls(answer.message()) => {
                let why = NotStarted::denied("the application ended the turn");
                self.end_unrun(answer, &why, steered.finish.reason.clone()).await
            }
            AfterRound::Finish => self.end_with_answer(answer).await,
            AfterRound::LeavePending => {
                self.record_answer(answer).await?;
                self.end_pending(answer, answer.tool_calls().map(|(block, _)| block).collect()).await
            }
            // A hook removed the calls and wants another round.
            AfterRound::AskAgain if has_calls(answer.message()) => {
                let plan = self.plan(answer, &steered, Vec::new(), &tools).await;
                self.go_to_tools(answer, plan).await
            }
            AfterRound::AskAgain => {
                self.record_answer(answer).await?;
                self.request.messages = self.messages_after(answer, &[]);
                Ok(Outcome::new(self.round_completed(answer), Next::Open))
            }
            AfterRound::Veto(reason) => self.end_unrun(answer, &NotStarted::cut_off(&reason), reason).await,
            AfterRound::Stop(limit) => self.stop_at(limit, answer, &steered, &tools).await,
            AfterRound::Run(fates) => {
                self.note_equal(&steered, &weighed, &fates);
                let plan = self.plan(answer, &steered, fates, &tools).await;
                self.go_to_tools(answer, plan).await
            }
        }
    }

    /// Notes the calls that later ones may equal, and those of which the model is told that they are too many.
    fn note_equal(&mut self, steered: &ChatResponse, weighed: &[Weighed], fates: &[Fate]) {
        self.compared.clear();
        for (((block, _), call), fate) in steered.tool_calls().zip(weighed).zip(fates) {
            match (fate, call.fingerprint) {
                (Fate::Admitted, Some(call)) => self.compared.push((block, call)),
                (Fate::NotStarted(NotStarted::Repeated(_)), Some(call)) => self.counts.same.tell(call),
                _ => {}
            }
        }
    }

    /// Ends the turn at a limit, or denies the calls of the answer and asks for a last one.
    async fn stop_at(
        &mut self,
        limit: Limit,
        answer: &ChatResponse,
        steered: &ChatResponse,
        tools: &ToolSet,
    ) -> Result<Outcome> {
        if self.may_close(&limit) && has_calls(answer.message()) {
            let denied = || Fate::NotStarted(NotStarted::Limit(limit.clone()));
            let fates = steered.tool_calls().map(|_| denied()).collect();
            let plan = self.plan(answer, steered, fates, tools).await;
            return self.go_to_tools(answer, plan).await;
        }
        let why = NotStarted::Limit(limit.clone());
        self.end_unrun(answer, &why, FinishReason::Limit(limit)).await
    }

    /// Plans the calls of an answer, as a hook has steered it. `fates` are those of the steered calls. A call that the hook
    /// removed is left out. One that it added is not the model's, so it has no place for a result.
    async fn plan(
        &self,
        answer: &ChatResponse,
        steered: &ChatResponse,
        fates: Vec<Fate>,
        tools: &ToolSet,
    ) -> ToolPlan {
        let (mut room, mut calls) = (Room::default(), Vec::new());
        let mut steered: Vec<_> = steered.tool_calls().zip(fates).collect();
        for (position, (block, call)) in (0_u32..).zip(answer.tool_calls()) {
            let key = CallKey::new(self.request.turn.id().clone(), answer.round(), position);
            let at = steered.iter().position(|((known, _), _)| *known == block);
            let fate = match at.map(|at| steered.remove(at)) {
                None => Fate::NotStarted(NotStarted::LeftOut),
                Some(((_, call), Fate::Admitted)) => {
                    let ready = self.prepared(call, tools, &mut room).await;
                    ready.map_or_else(Fate::NotStarted, |(tool, arguments)| {
                        let (call, key) = (call.clone(), key.clone());
                        Fate::Ready(ReadyCall { call, block, key, tool, arguments, edited: None })
                    })
                }
                Some((_, fate)) => fate,
            };
            calls.push(PlannedCall::new(block, key, call, fate));
        }
        ToolPlan::new(calls)
    }

    /// Returns the tool of a call and its arguments, unless the time of the turn is over before.
    async fn prepared(
        &self,
        call: &ToolCall,
        tools: &ToolSet,
        room: &mut Room,
    ) -> Result<(Arc<dyn Tool>, Value), NotStarted> {
        room.take(call, tools)?;
        let preparing = prepare_in_time(call, tools, &self.config.schemas, self.config.leniency);
        match self.deadline {
            None => preparing.await,
            Some(deadline) => timeout_at(deadline, preparing)
                .await
                .unwrap_or_else(|_| Err(NotStarted::Limit(self.time_limit()))),
        }
    }

    async fn go_to_tools(&mut self, answer: &ChatResponse, mut plan: ToolPlan) -> Result<Outcome> {
        self.decide_calls(&mut plan).await?;
        self.record_answer(answer).await?;
        // With pending calls, no round follows: the end of this one is `Completed`.
        let ended = if plan.pending().is_empty() { self.round_completed(answer) } else { Vec::new() };
        Ok(Outcome::new(ended, Next::RunTools(answer.clone(), plan)))
    }

    /// Returns the facts about each call of the answer: the side that runs it, and its hash.
    fn weighed(&self, answer: &ChatResponse, tools: &ToolSet) -> Vec<Weighed> {
        let weigh = |(_, call): (_, &ToolCall)| {
            let runner = if self.may_run(call, tools) { Runner::Loop } else { Runner::Caller };
            let is_limited = runner == Runner::Loop && self.limits.same_calls.is_some();
            Weighed { runner, fingerprint: is_limited.then(|| Fingerprint::from_call(call)) }
        };
        answer.tool_calls().map(weigh).collect()
    }

    /// Checks whether the call is for the loop. So is an incomplete one: its caller may not run it, and the model reads
    /// that it did not start.
    fn may_run(&self, call: &ToolCall, tools: &ToolSet) -> bool {
        if !call.complete {
            return true;
        }
        let ours = tools.find(&call.name).is_none_or(|tool| !tool.definition().client_side);
        ours && (self.config.eligible)(call)
    }
}

impl LoopRun {
    /// Asks the policy about each call that could run, then the hook about those that it does not deny. In call order, before
    /// any tool of the round starts. A call that the policy leaves to a person stays so, unless the hook denies it.
    pub(super) async fn decide_calls(&self, plan: &mut ToolPlan) -> Result<()> {
        let config = &self.config;
        for planned in plan.undecided() {
            let by_policy = config.policy.as_ref().zip(planned.ready());
            let by_policy = by_policy.map(|(policy, call)| policy.decide(&call.call.name, &call.arguments));
            let is_left = by_policy == Some(CallDecision::Ask);
            if let Some(decision) = by_policy.filter(|_| !is_left) {
                planned.decide(decision, &config.schemas, config.leniency).await;
            }
            let Some(call) = planned.ready() else { continue };
            let decision = match config.hooks.before_tool(call, &self.request).await? {
                CallDecision::Run | CallDecision::RunWith(_) if is_left => CallDecision::Ask,
                decision => decision,
            };
            planned.decide(decision, &config.schemas, config.leniency).await;
        }
        plan.leave_repeated();
        Ok(())
    }
}

/// The run of the calls.
impl LoopRun {
    /// Refuses the calls of a plan that were started before. Records the starts of the others whose tools must not
    /// run twice.
    ///
    /// # Errors
    /// Returns the error of the first recorder that fails. No tool may run then.
    async fn announce_starts(&self, round: u32, plan: &mut ToolPlan) -> Result<()> {
        let turn = &self.request.turn;
        plan.refuse(turn);
        let starts = plan.starts();
        if starts.is_empty() {
            return Ok(());
        }
        turn.record(&Record::new(round, Step::Started(starts.clone()), Vec::new())).await?;
        // A recorder may have added starts that only it knew.
        plan.refuse(turn);
        turn.facts(|facts| facts.started.extend(starts.into_iter().map(|start| start.key)));
        Ok(())
    }

    /// Runs the calls, records their results, and continues or ends the turn.
    pub(super) async fn run_tools(
        &mut self,
        answer: ChatResponse,
        plan: ToolPlan,
        events: ToolEvents,
    ) -> Result<Outcome> {
        let outcome = self.run_and_continue(&answer, plan, events).await;
        outcome.map_err(|error| error.or_partial(answer))
    }

    async fn run_and_continue(
        &mut self,
        answer: &ChatResponse,
        mut plan: ToolPlan,
        events: ToolEvents,
    ) -> Result<Outcome> {
        if let Err(error) = self.announce_starts(answer.round(), &mut plan).await {
            return Ok(self.abandon(answer, error).await);
        }
        plan.counted().for_each(|tool| self.counts.note_call(tool));
        state_bounds(&self.request.turn, &self.limits, self.deadline, &self.counts);
        let batch = ToolBatch::new(&self.request, events, self.deadline);
        let (results, broken) = plan.run(&*self.config.execution, batch, &self.limits).await;
        let results: Vec<_> = results.into_iter().map(Message::tool).collect();
        if !results.is_empty() {
            self.record_results(answer, &results).await?;
        }
        match broken {
            Some(error) => Err(error),
            None => self.continue_run(answer, &plan, &results).await,
        }
    }

    async fn continue_run(
        &mut self,
        answer: &ChatResponse,
        plan: &ToolPlan,
        results: &[Message],
    ) -> Result<Outcome> {
        self.compare(answer, results);
        let pending = plan.pending();
        if !pending.is_empty() {
            return self.end_pending(answer, pending).await;
        }
        if plan.is_direct() && results.iter().filter_map(Message::tool_result).all(|result| !result.is_error)
        {
            let results = results.iter().filter_map(Message::tool_result);
            let answer = Message::assistant_blocks(direct_blocks(results));
            return self.end_with_closing(answer.clone(), answer, FinishReason::ReturnDirect).await;
        }
        let denied = plan.denied().filter(|_| self.limits.on_limit != OnLimit::TellModel).cloned();
        let limit = denied.or_else(|| self.limit_reached());
        if let Some(limit) = limit.and_then(|limit| self.close_at(limit)) {
            return self.end_at_limit(limit).await;
        }
        self.prepare_next(answer, results).await?;
        Ok(Outcome::new(Vec::new(), Next::Open))
    }

    /// Counts the calls of the answer whose results equal those of the equal calls before.
    fn compare(&mut self, answer: &ChatResponse, results: &[Message]) {
        for (block, call) in std::mem::take(&mut self.compared) {
            let id = answer.tool_calls().find(|(known, _)| *known == block).map(|(_, call)| &call.id);
            let mut of_calls = results.iter().filter_map(Message::tool_result);
            let result = of_calls.find(|result| Some(&result.call_id) == id);
            result.into_iter().for_each(|result| self.counts.same.note(call, Some(result)));
        }
    }

    async fn prepare_next(&mut self, answer: &ChatResponse, results: &[Message]) -> Result<()> {
        let proposed = self.messages_after(answer, results);
        let next = self.config.hooks.next_messages(proposed.clone(), results).await?;
        let added = next.added_since(&proposed);
        self.request.messages = next;
        // A forced call is requested once; requested in every round, the turn would never end.
        if matches!(self.request.options.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_))) {
            self.request.options.tool_choice = Some(ToolChoice::Auto);
        }
        self.inject(added, self.counts.rounds).await
    }
}
