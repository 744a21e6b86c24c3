mod at_most_once;
pub(crate) mod client_side_answer;
mod decide;
mod direct_answer;
mod finish;
mod history;
mod out_of_time;
pub(crate) mod run_tools;
mod step;
pub(crate) mod stream;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, ChatRequest, ChatResponse, Chunk, Error, FinishReason, Limit, Result, ToolCall, ToolChoice,
    ToolEvent, ToolSet, Usage, drop_caught,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::config::Config;
use crate::execution::tool_events::ToolEvents;
use crate::plan::ToolPlan;
use crate::plan::prepare::prepare;
use crate::run::decide::{Counts, Decision, Runner, decide};
use crate::run::history::has_calls;
use crate::run::step::{Next, Outcome};
use crate::streaming::Filter;
use crate::{LoopEnd, LoopOutcome, NotStarted, ToolCallStreaming};

/// Maximum number of buffered tool events.
const WAITING_EVENTS: usize = 16;

/// State of one turn of the loop, and its steps between rounds.
pub(crate) struct LoopRun {
    config: Arc<Config>,
    next: AdvisorChain,
    /// The request to send in the next round, or the one sent in the running round.
    request: ChatRequest,
    own_history: bool,
    counts: Counts,
    usage: Option<Usage>,
    deadline: Option<Instant>,
    last_round: LastRound,
    finalized: bool,
}

/// Whether the running round is certainly the last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastRound {
    /// Not decided before its first chunk.
    Unknown,
    Yes,
    /// A further round may follow.
    No,
}

impl LoopRun {
    pub(crate) fn new(config: Arc<Config>, request: ChatRequest, next: AdvisorChain) -> Self {
        let own_history = config.history.is_in_loop(&next);
        let turn_timeout = config.limits.turn_timeout;
        Self {
            config,
            next,
            request,
            own_history,
            counts: Counts::default(),
            usage: None,
            deadline: turn_timeout.and_then(|time| Instant::now().checked_add(time)),
            last_round: LastRound::Unknown,
            finalized: false,
        }
    }

    /// Runs the start hook and opens the first round.
    async fn begin(&mut self) -> Result<Outcome> {
        // Checked before memory records the start of the turn.
        self.next.validate_tools(&self.request.tools)?;
        self.next.on_loop_start(&self.request)?;
        self.record_added().await?;
        let request = self.config.hooks.loop_start(self.request.clone()).await?;
        self.next.on_loop_start(&request)?;
        self.take_over(request, 0).await?;
        self.open().await
    }

    async fn open(&mut self) -> Result<Outcome> {
        match self.ask().await {
            Ok(outcome) => Ok(outcome),
            // An advisor inside may have read an answer to its end before it failed.
            Err(error) => Ok(Box::pin(self.break_off(error)).await),
        }
    }

    async fn ask(&mut self) -> Result<Outcome> {
        let round = self.counts.rounds.saturating_add(1);
        self.last_round = LastRound::Unknown;
        let request = self.config.hooks.before_round(self.request.clone(), round).await?;
        self.take_over(request, round).await?;
        if let Some(limit) = self.time_is_over() {
            return Box::pin(self.end_at_limit(limit)).await;
        }
        self.counts.rounds = round;
        let span = tracing::info_span!("round", round);
        let opening = self.next.next_stream(self.request.clone()).instrument(span.clone());
        let opened = match self.deadline {
            Some(deadline) => timeout_at(deadline, opening).await,
            None => Ok(opening.await),
        };
        match opened {
            Ok(stream) => Ok(Outcome::new(Vec::new(), Next::Read(stream?.in_span(span)))),
            Err(_) => Box::pin(self.end_at_limit(self.time_limit())).await,
        }
    }

    /// Checks whether a chunk of the running round is shown.
    #[inline]
    fn shows(&mut self, chunk: &Chunk) -> bool {
        self.filter(chunk.round()).shows(chunk)
    }

    #[inline]
    fn filter(&mut self, round: u32) -> Filter {
        let mode = self.config.streaming;
        let certain = mode == ToolCallStreaming::FinalAnswerOnly && self.is_certainly_last(round);
        Filter { mode, tool_events: self.config.tool_events, certain }
    }

    fn is_certainly_last(&mut self, round: u32) -> bool {
        if self.last_round == LastRound::Unknown {
            let no_tools = self.tools_of(round).is_empty();
            let none_wanted = self.request.options.tool_choice == Some(ToolChoice::None);
            let no_round_left = self.config.limits.rounds.is_some_and(|rounds| self.counts.rounds >= rounds);
            let is_last = no_tools || none_wanted || no_round_left;
            self.last_round = if is_last { LastRound::Yes } else { LastRound::No };
        }
        self.last_round == LastRound::Yes
    }

    /// Returns the tools that the model was offered in this round, including those that inner advisors added.
    fn tools_of(&self, round: u32) -> ToolSet {
        self.request.turn.take_offered_tools(round).unwrap_or_else(|| self.request.tools.clone())
    }

    fn shows_tools(&self) -> bool {
        self.config.tool_events || self.config.streaming == ToolCallStreaming::All
    }

    fn tool_events(&self) -> (ToolEvents, Option<mpsc::Receiver<ToolEvent>>) {
        if !self.shows_tools() {
            return (ToolEvents::ignored(), None);
        }
        let (events, receiver) = ToolEvents::channel(WAITING_EVENTS);
        (events.within(self.config.limits.of_result()), Some(receiver))
    }

    /// Decides the action after a round. All advisors inside the loop have completed for the answer.
    async fn after_round(&mut self, answer: ChatResponse) -> Result<Outcome> {
        if let Some(usage) = answer.usage() {
            self.usage.get_or_insert_default().add(usage);
        }
        match self.steer(&answer).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => Ok(self.abandon(&answer, error).await),
        }
    }

    async fn steer(&mut self, answer: &ChatResponse) -> Result<Outcome> {
        let steered = self.config.hooks.after_round(answer.clone(), self.counts.rounds).await?;
        if answer.choices().len() > 1 && answer.choices().iter().any(|choice| has_calls(&choice.message)) {
            return Err(Error::configuration("several choices came with tool calls; ask for one choice"));
        }
        let tools = self.tools_of(answer.round());
        let may_run = steered.tool_calls().all(|(_, call)| self.may_run(call, &tools));
        let runner = if may_run { Runner::Loop } else { Runner::Caller };
        match decide(&steered, runner, self.time_is_over(), &self.counts, &self.config.limits) {
            Decision::Finish if has_calls(answer.message()) => {
                self.end_unrun(answer, &NotStarted::ByApplication, steered.finish().reason.clone()).await
            }
            Decision::Finish => self.end_with_answer(answer, answer.finish().reason.clone()).await,
            Decision::ClientSide => self.end_client_side(answer).await,
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
            Decision::Stop(limit) => {
                let why = NotStarted::Limit(limit.clone());
                self.end_unrun(answer, &why, FinishReason::Limit(limit)).await
            }
            Decision::Run(denied) => {
                let config = &self.config;
                let prepare = |call: &ToolCall| prepare(call, &tools, &config.schemas, config.leniency);
                let turn = self.request.turn.id();
                self.go_to_tools(ToolPlan::new(answer.clone(), turn, &steered, denied, prepare)).await
            }
        }
    }

    async fn go_to_tools(&mut self, plan: ToolPlan) -> Result<Outcome> {
        self.record_answer(&plan.answer).await?;
        Ok(Outcome::new(self.round_completed(&plan.answer), Next::RunTools(plan)))
    }

    fn may_run(&self, call: &ToolCall, tools: &ToolSet) -> bool {
        let ours = tools.find(&call.name).is_none_or(|tool| !tool.definition().client_side);
        ours && (self.config.eligible)(call)
    }

    fn time_is_over(&self) -> Option<Limit> {
        let over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        over.then(|| self.time_limit())
    }

    fn time_limit(&self) -> Limit {
        let time = self.config.limits.turn_timeout.unwrap_or_default();
        Limit::Time(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    fn round_completed(&mut self, answer: &ChatResponse) -> Vec<Chunk> {
        let shown = self.filter(answer.round()).shows_round_end();
        shown.then(|| Chunk::RoundCompleted(answer.clone())).into_iter().collect()
    }

    fn finalize(&mut self, end: LoopEnd) {
        if std::mem::replace(&mut self.finalized, true) {
            return;
        }
        let outcome = LoopOutcome {
            end,
            rounds: self.counts.rounds,
            calls: self.counts.calls,
            usage: self.usage,
            transcript: self.transcript(),
        };
        self.config.hooks.finalize(&outcome);
    }
}

impl Drop for LoopRun {
    fn drop(&mut self) {
        // A panic in the hook must not keep the rest of the turn from being dropped.
        let finalized = catch_unwind(AssertUnwindSafe(|| self.finalize(LoopEnd::Dropped)));
        drop_caught(finalized);
    }
}
