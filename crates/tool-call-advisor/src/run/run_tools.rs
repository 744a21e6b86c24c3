//! `LoopRun::run_tools`: executes a plan, records its results, prepares the next round; `execute_one`.

use advisor_core::{ChatResponse, Error, ErrorKind, FinishReason, Message, Result, ToolChoice, ToolResult};

use crate::config::Config;
use crate::execution::tool_events::ToolEvents;
use crate::plan::ToolPlan;
use crate::plan::call_identity::CallIdentity;
use crate::run::LoopRun;
use crate::run::bounds::state_bounds;
use crate::run::decide::ending_limit;
use crate::run::direct_answer::direct_blocks;
use crate::run::step::{Next, Outcome};
use crate::{ReadyCall, ToolBatch};

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
