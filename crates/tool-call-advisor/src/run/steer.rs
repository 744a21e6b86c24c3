//! The step after a round: the hook steers the answer, the decision is made, and calls are planned.

use std::collections::HashMap;

use advisor_core::{AnsweredBefore, ChatResponse, FinishReason, Limit, Result, ToolCall, ToolSet};

use tokio::time::timeout_at;

use crate::NotStarted;
use crate::plan::ToolPlan;
use crate::plan::admission::Admission;
use crate::plan::prepare::{Room, Unready, prepare_in_time};
use crate::run::LoopRun;
use crate::run::decide::{Decision, Runner, Weighed, decide};
use crate::run::history::has_calls;
use crate::run::same_calls::Fingerprint;
use crate::run::step::{Next, Outcome};

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
