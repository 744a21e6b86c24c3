//! The step after a round: the hook steers the answer, the decision is made, calls are planned and run.

use std::collections::HashMap;

use advisor_core::{
    AnsweredBefore, ChatResponse, Error, ErrorKind, FinishReason, Limit, Message, OUTCOME_UNKNOWN, Record,
    Result, StartedCalls, Step, ToolCall, ToolChoice, ToolResult, ToolSet, VERIFY_BEFORE_RETRYING,
};
use tokio::time::timeout_at;

use crate::advisor::Config;
use crate::execution::ToolEvents;
use crate::plan::prepare::{Room, Unready, prepare_in_time};
use crate::plan::{Admission, CallIdentity, PlannedCall, ToolPlan};
use crate::run::decide::{Decision, Runner, Weighed, decide, ending_limit};
use crate::run::end::direct_blocks;
use crate::run::history::has_calls;
use crate::run::same_calls::Fingerprint;
use crate::run::stream::{Next, Outcome};
use crate::run::{LoopRun, state_bounds};
use crate::{CallDecision, NotStarted, ReadyCall, ToolBatch};

/// The step after a round.
impl LoopRun {
    /// Decides the action after a round. All advisors inside the loop have completed for the answer.
    pub(super) async fn after_round(&mut self, answer: ChatResponse) -> Result<Outcome> {
        if let Some(usage) = answer.usage() {
            self.usage.get_or_insert_default().add(usage);
        }
        match self.steer(&answer).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => Ok(self.abandon(&answer, error).await),
        }
    }

    async fn steer(&mut self, answer: &ChatResponse) -> Result<Outcome> {
        if self.request.turn.extensions().get::<AnsweredBefore>().is_some() {
            return self.end_answered_before(answer).await;
        }
        let steered = self.config.hooks.after_round(answer.clone(), self.counts.rounds).await?;
        let tools = self.tools_of(answer.round());
        let weighed = self.weighed(&steered, &tools);
        let limit = self.limit_reached();
        match decide(&steered, &weighed, limit.as_ref(), &self.counts, &self.limits) {
            Decision::Finish if has_calls(answer.message()) => {
                self.end_unrun(answer, &NotStarted::ByApplication, steered.finish().reason.clone()).await
            }
            Decision::Finish => self.end_with_answer(answer).await,
            Decision::ClientSide => {
                self.record_answer(answer).await?;
                self.end_client_side(answer, answer.tool_calls().map(|(block, _)| block).collect()).await
            }
            // A hook removed the calls and wants another round.
            Decision::AskAgain if has_calls(answer.message()) => {
                self.go_to_tools(ToolPlan::without_calls(answer.clone())).await
            }
            Decision::AskAgain => {
                self.record_answer(answer).await?;
                self.request.messages = self.messages_after(answer, &[]);
                Ok(Outcome::new(self.round_completed(answer), Next::Open))
            }
            Decision::Veto(reason) => {
                self.end_unrun(answer, &NotStarted::CutOff(reason.clone()), reason).await
            }
            Decision::Stop(limit) => self.stop_at(limit, answer, &steered, &tools).await,
            Decision::Run(admissions) => {
                self.note_equal(&steered, &weighed, &admissions);
                let plan = self.plan(answer, &steered, admissions, &tools).await;
                self.go_to_tools(plan).await
            }
        }
    }

    /// Notes the calls that later ones may equal, and those of which the model is told that they are too many.
    fn note_equal(&mut self, steered: &ChatResponse, weighed: &[Weighed], admissions: &[Admission]) {
        self.compared.clear();
        for (((block, _), call), admission) in steered.tool_calls().zip(weighed).zip(admissions) {
            match (admission, call.fingerprint) {
                (Admission::Admitted, Some(call)) => self.compared.push((block, call)),
                (Admission::Told(_), Some(call)) => self.counts.same.tell(call),
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
            let denied = steered.tool_calls().map(|_| Admission::Denied(limit.clone())).collect();
            let plan = self.plan(answer, steered, denied, tools).await;
            return self.go_to_tools(plan).await;
        }
        let why = NotStarted::Limit(limit.clone());
        self.end_unrun(answer, &why, FinishReason::Limit(limit)).await
    }

    /// Plans the calls of an answer, as a hook has steered it.
    async fn plan(
        &self,
        answer: &ChatResponse,
        steered: &ChatResponse,
        admissions: Vec<Admission>,
        tools: &ToolSet,
    ) -> ToolPlan {
        let config = &self.config;
        let (mut prepared, mut room) = (HashMap::new(), Room::default());
        for ((block, call), admission) in steered.tool_calls().zip(&admissions) {
            if *admission == Admission::Admitted {
                let preparing = prepare_in_time(call, tools, &config.schemas, config.leniency);
                let ready = match room.take(call, tools) {
                    Ok(()) => self.within_time(preparing).await,
                    Err(full) => Err(full),
                };
                prepared.insert(block, ready);
            }
        }
        ToolPlan::new(answer.clone(), self.request.turn.id(), steered, admissions, |block| {
            prepared.remove(&block)
        })
    }

    /// Waits for a call to be prepared, until the time of the turn is over.
    async fn within_time<T>(
        &self,
        preparing: impl Future<Output = Result<T, Unready>>,
    ) -> Result<T, Unready> {
        let Some(deadline) = self.deadline else { return preparing.await };
        timeout_at(deadline, preparing).await.unwrap_or_else(|_| {
            let why = NotStarted::Limit(self.time_limit());
            Err(Unready { reason: why.reason(), text: self.config.texts.not_started(&why) })
        })
    }

    async fn go_to_tools(&mut self, mut plan: ToolPlan) -> Result<Outcome> {
        self.decide_calls(&mut plan).await?;
        self.record_answer(&plan.answer).await?;
        // With client-side calls, no round follows: the end of this one is `Completed`.
        let ended = if plan.has_client_side() { Vec::new() } else { self.round_completed(&plan.answer) };
        Ok(Outcome::new(ended, Next::RunTools(plan)))
    }

    /// Returns the facts about each call of the answer: the side that runs it, and its hash.
    fn weighed(&self, answer: &ChatResponse, tools: &ToolSet) -> Vec<Weighed> {
        let weigh = |(_, call): (_, &ToolCall)| {
            let runner = if self.may_run(call, tools) { Runner::Loop } else { Runner::Caller };
            let is_limited = runner == Runner::Loop && self.limits.same_calls_of(&call.name).is_some();
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

/// Calls that must not run twice.
impl LoopRun {
    /// Refuses the calls of a plan that were started before. Records the starts of the others whose tools must not
    /// run twice.
    ///
    /// # Errors
    /// Returns the error of the first recorder that fails. No tool may run then.
    pub(super) async fn announce_starts(&self, plan: &mut ToolPlan) -> Result<()> {
        let turn = &self.request.turn;
        if let Some(known) = turn.extensions().get() {
            plan.refuse(|planned| refusal(planned, &known));
        }
        let starts = plan.starts();
        if starts.is_empty() {
            return Ok(());
        }
        let record = Record::new(plan.answer.round(), Step::Started(starts.clone()), Vec::new());
        turn.record(&record).await?;
        // A recorder may have added starts that only it knew.
        if let Some(known) = turn.extensions().get() {
            plan.refuse(|planned| refusal(planned, &known));
        }
        turn.extensions().update(|started: &mut StartedCalls| {
            starts.into_iter().for_each(|start| started.note(start.key))
        });
        Ok(())
    }
}

/// Returns the reason why a call that no limit denies is not run: it was, or may have been, started before.
fn refusal(planned: &PlannedCall, known: &StartedCalls) -> Option<&'static str> {
    if planned.is_tried() && known.contains(planned.key()) {
        return Some(VERIFY_BEFORE_RETRYING);
    }
    let silent = planned.runs() && planned.effect().is_none() && known.is_repeated(planned.key().round);
    silent.then_some(OUTCOME_UNKNOWN)
}

impl LoopRun {
    /// Runs the calls, records their results, and continues or ends the turn.
    ///
    /// Reports the calls that do not run before any tool starts.
    pub(super) async fn run_tools(&mut self, mut plan: ToolPlan, events: ToolEvents) -> Result<Outcome> {
        let outcome = self.run_and_continue(&mut plan, events).await;
        outcome.map_err(|error| error.or_partial(plan.answer))
    }

    async fn run_and_continue(&mut self, plan: &mut ToolPlan, events: ToolEvents) -> Result<Outcome> {
        if let Err(error) = self.announce_starts(plan).await {
            return Ok(self.abandon(&plan.answer, error).await);
        }
        let mut unrun = plan.unrun(&self.config.texts);
        for call in &unrun {
            events.not_run(call).await;
        }
        let (ran, broken) = self.execute(plan, events).await;
        if broken.is_some() {
            unrun.extend(plan.abandoned(&self.config.texts));
        }
        let results = plan.results(ran, unrun, self.limits.of_result());
        if !results.is_empty() {
            self.record_results(&plan.answer, &results).await?;
        }
        match broken {
            Some(error) => Err(error),
            None => self.continue_run(plan, &results).await,
        }
    }

    /// Returns a result for each call that runs, and the error of the execution, if it failed.
    async fn execute(&mut self, plan: &mut ToolPlan, events: ToolEvents) -> (Vec<ToolResult>, Option<Error>) {
        plan.counted().for_each(|call| self.counts.note_call(&call.name));
        let ready = plan.take_ready();
        if ready.is_empty() {
            return (Vec::new(), None);
        }
        state_bounds(&self.request.turn, &self.limits, self.deadline, &self.counts);
        let wanted = identities(&ready);
        let told = events.expect(&ready);
        let batch = ToolBatch::new(ready, &self.request, events, self.deadline);
        let (ran, broken) = match execute(&self.config, &wanted, batch).await {
            Ok(ran) => (ran, None),
            Err(error) => {
                let text = "stopped: the machinery that runs tools failed; the outcome is unknown";
                (wanted.iter().map(|call| call.error(text)).collect(), Some(error))
            }
        };
        told.complete(&ran).await;
        (ran, broken)
    }

    async fn continue_run(&mut self, plan: &ToolPlan, results: &[Message]) -> Result<Outcome> {
        self.compare(&plan.answer, results);
        if plan.has_client_side() {
            return self.end_client_side(&plan.answer, plan.client_side()).await;
        }
        if plan.is_direct() && results.iter().filter_map(Message::tool_result).all(|result| !result.is_error)
        {
            let results = results.iter().filter_map(Message::tool_result);
            let answer = Message::assistant_blocks(direct_blocks(results, self.config.texts.done()));
            return self.end_with_closing(answer.clone(), answer, FinishReason::ReturnDirect).await;
        }
        let limit = ending_limit(plan.denied(), &self.limits).or_else(|| self.limit_reached());
        if let Some(limit) = limit.and_then(|limit| self.close_at(limit)) {
            return self.end_at_limit(limit).await;
        }
        self.prepare_next(&plan.answer, results).await?;
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

/// Runs the calls of a batch, whose identities are `wanted`. Checks that it gets one result each, in their order.
async fn execute(config: &Config, wanted: &[CallIdentity], batch: ToolBatch) -> Result<Vec<ToolResult>> {
    let results = config.execution.execute(batch).await?;
    let matches = wanted.len() == results.len()
        && wanted.iter().zip(&results).all(|(call, result)| call.id == result.call_id);
    if matches { Ok(results) } else { Err(other_results()) }
}

/// Runs a batch outside the loop, and returns one result per call, in call order.
pub(crate) async fn execute_batch(config: &Config, batch: ToolBatch) -> Result<Vec<ToolResult>> {
    let wanted = identities(&batch.calls);
    let told = batch.events.expect(&batch.calls);
    let ran = execute(config, &wanted, batch).await?;
    told.complete(&ran).await;
    Ok(ran)
}

/// Runs the one call of a batch.
pub(crate) async fn execute_one(config: &Config, batch: ToolBatch) -> Result<ToolResult> {
    execute_batch(config, batch).await?.into_iter().next().ok_or_else(other_results)
}

fn identities(calls: &[ReadyCall]) -> Vec<CallIdentity> {
    calls.iter().map(|ready| CallIdentity::from_call(&ready.call)).collect()
}

fn other_results() -> Error {
    Error::new(ErrorKind::Tool, "the tool execution gave other results than one per call, in call order")
}
