use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorRole, ChatRequest, ChatResponse, Chunk, Error, FinishReason, Limit, Message,
    MessageList, Record, Result, Role, Step, ToolCall, ToolChoice, ToolEvent, ToolSet, Usage,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::advisor::Config;
use crate::decide::{Counts, Decision, decide};
use crate::endings::cut_by;
use crate::execution::ToolEvents;
use crate::outcome::Outcome;
use crate::run_tools::ToolPlan;
use crate::streaming::Filter;
use crate::{LoopEnd, LoopOutcome, ToolCallStreaming};

/// One turn of the loop: what is known of it and what it does between the rounds.
pub(crate) struct LoopRun {
    pub(crate) config: Arc<Config>,
    next: AdvisorChain,
    /// What is sent in the next round, and what was sent in the last one.
    pub(crate) request: ChatRequest,
    own_history: bool,
    pub(crate) counts: Counts,
    pub(crate) usage: Option<Usage>,
    /// The messages of the turn that are final.
    pub(crate) transcript: MessageList,
    pub(crate) deadline: Option<Instant>,
    /// Whether the running round is known to be the last; unknown until its first chunk.
    certain: Option<bool>,
    finalized: bool,
}

impl LoopRun {
    pub(crate) fn new(config: Arc<Config>, request: ChatRequest, next: AdvisorChain) -> Self {
        let own_history =
            config.own_history.unwrap_or_else(|| !next.contains(|role| role == AdvisorRole::Memory));
        let total_time = config.limits.total_time;
        let transcript = request.turn.input().unwrap_or_else(|| request.messages.split_system().1.into());
        Self {
            config,
            next,
            request,
            own_history,
            counts: Counts::default(),
            usage: None,
            transcript,
            deadline: total_time.and_then(|time| Instant::now().checked_add(time)),
            certain: None,
            finalized: false,
        }
    }

    /// The first round, after the hook for the start.
    pub(crate) async fn begin(&mut self) -> Result<Outcome> {
        self.next.join(&self.request)?;
        let hooks = Arc::clone(&self.config.hooks);
        let request = hooks.loop_start(self.request.clone()).await?;
        self.next.join(&request)?;
        self.take_over(request, 0).await?;
        self.open().await
    }

    pub(crate) async fn open(&mut self) -> Result<Outcome> {
        match self.ask().await {
            Ok(outcome) => Ok(outcome),
            // An advisor inside may have read an answer to its end before it failed.
            Err(error) => Err(self.break_off(error).await),
        }
    }

    async fn ask(&mut self) -> Result<Outcome> {
        let round = self.counts.rounds.saturating_add(1);
        self.certain = None;
        let hooks = Arc::clone(&self.config.hooks);
        let request = hooks.before_round(self.request.clone(), round).await?;
        self.take_over(request, round).await?;
        if let Some(limit) = self.time_is_over() {
            return self.end_at_limit(limit).await;
        }
        self.counts.rounds = round;
        let span = tracing::info_span!("round", round);
        let opening = self.next.next_stream(self.request.clone()).instrument(span.clone());
        let opened = match self.deadline {
            Some(deadline) => timeout_at(deadline, opening).await,
            None => Ok(opening.await),
        };
        match opened {
            Ok(stream) => Ok(Outcome::Opened(stream?.in_span(span))),
            Err(_) => self.end_at_limit(self.time_limit()).await,
        }
    }

    /// Takes a request as a hook gave it; messages that the hook added are final from now on.
    async fn take_over(&mut self, request: ChatRequest, round: u32) -> Result<()> {
        let added = request.messages.added_since(&self.request.messages);
        self.request = request;
        self.inject(added, round).await
    }

    pub(crate) async fn inject(&mut self, added: Vec<Message>, round: u32) -> Result<()> {
        let kept = kept(added);
        if kept.is_empty() {
            return Ok(());
        }
        self.transcript.extend(kept.iter().cloned());
        self.record(round, Step::Injected, kept).await
    }

    /// Whether a chunk of the running round comes out.
    pub(crate) fn shows(&mut self, chunk: &Chunk) -> bool {
        self.filter(chunk.round()).shows(chunk)
    }

    pub(crate) fn filter(&mut self, round: u32) -> Filter {
        let mode = self.config.streaming;
        let certain = mode == ToolCallStreaming::FinalAnswerOnly && self.is_certainly_last(round);
        Filter { mode, tool_events: self.config.tool_events, certain }
    }

    fn is_certainly_last(&mut self, round: u32) -> bool {
        if let Some(certain) = self.certain {
            return certain;
        }
        let no_tools = self.tools_of(round).is_empty();
        let none_wanted = self.request.options.tool_choice == Some(ToolChoice::None);
        let no_round_left = self.config.limits.rounds.is_some_and(|rounds| self.counts.rounds >= rounds);
        *self.certain.insert(no_tools || none_wanted || no_round_left)
    }

    /// The tools that the model was offered in this round, whoever added them.
    fn tools_of(&self, round: u32) -> ToolSet {
        self.request.turn.offered_tools(round).unwrap_or_else(|| self.request.tools.clone())
    }

    pub(crate) fn tool_events(&self) -> (ToolEvents, Option<mpsc::Receiver<ToolEvent>>) {
        let filter =
            Filter { mode: self.config.streaming, tool_events: self.config.tool_events, certain: false };
        if !filter.shows_tools() {
            return (ToolEvents::ignored(), None);
        }
        let (events, receiver) = ToolEvents::channel(self.config.limits.of_result());
        (events, Some(receiver))
    }

    /// Everything inside the loop is done with the answer: decides what comes next.
    pub(crate) async fn after_round(&mut self, answer: ChatResponse) -> Result<Outcome> {
        if let Some(usage) = answer.usage() {
            self.usage.get_or_insert_default().add(usage);
        }
        match self.steer(&answer).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => {
                self.abandon(&answer).await;
                Err(error.with_partial(answer))
            }
        }
    }

    async fn steer(&mut self, answer: &ChatResponse) -> Result<Outcome> {
        let hooks = Arc::clone(&self.config.hooks);
        let steered = hooks.after_round(answer.clone(), self.counts.rounds).await?;
        if answer.choices().len() > 1 && answer.choices().iter().any(|choice| has_calls(&choice.message)) {
            return Err(Error::configuration("several choices came with tool calls; ask for one choice"));
        }
        let tools = self.tools_of(answer.round());
        let eligible = steered.tool_calls().all(|(_, call)| self.may_run(call, &tools));
        match decide(&steered, eligible, self.time_is_over(), &self.counts, &self.config.limits) {
            Decision::Finish if has_calls(answer.message()) => {
                let text = "not started: the application ended the turn";
                self.end_unrun(answer, text, steered.finish().reason.clone()).await
            }
            Decision::Finish => self.end_with_answer(answer, answer.finish().reason.clone()).await,
            Decision::HandOut => self.hand_out(answer).await,
            // A hook left out the calls and wants to go on.
            Decision::AskAgain if has_calls(answer.message()) => {
                let plan = ToolPlan { answer: answer.clone(), tools, calls: Vec::new() };
                self.go_to_tools(plan).await
            }
            Decision::AskAgain => {
                self.record_answer(answer).await?;
                self.request.messages = self.messages_after(answer, &[]);
                Ok(Outcome::Again(self.round_completed(answer)))
            }
            Decision::Veto(reason) => {
                let text =
                    format!("not started: the answer was cut off ({})", cut_by(&reason).unwrap_or("stopped"));
                self.end_unrun(answer, &text, reason).await
            }
            Decision::Stop(limit) => {
                let text = format!("not started: {limit} was reached");
                self.end_unrun(answer, &text, FinishReason::Limit(limit)).await
            }
            Decision::Run(denied) => {
                let plan = ToolPlan::new(answer.clone(), tools, &steered, denied);
                self.go_to_tools(plan).await
            }
        }
    }

    async fn go_to_tools(&mut self, plan: ToolPlan) -> Result<Outcome> {
        self.record_answer(&plan.answer).await?;
        Ok(Outcome::Tools(self.round_completed(&plan.answer), plan))
    }

    fn may_run(&self, call: &ToolCall, tools: &ToolSet) -> bool {
        let ours = tools.find(&call.name).is_none_or(|tool| !tool.definition().by_caller);
        ours && (self.config.eligible)(call)
    }

    pub(crate) fn time_is_over(&self) -> Option<Limit> {
        let over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        over.then(|| self.time_limit())
    }

    pub(crate) fn time_limit(&self) -> Limit {
        let time = self.config.limits.total_time.unwrap_or_default();
        Limit::Time(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    /// What the loop sends after this answer: all of it again, or what memory inside it has not seen.
    pub(crate) fn messages_after(&self, answer: &ChatResponse, results: &[Message]) -> MessageList {
        let mut messages = if self.own_history {
            let mut messages = self.request.messages.clone();
            messages.extend(nonempty(answer));
            messages
        } else {
            self.request.messages.split_system().0.into()
        };
        messages.extend(results.iter().cloned());
        messages
    }

    pub(crate) async fn record_answer(&mut self, answer: &ChatResponse) -> Result<()> {
        let messages: Vec<_> = nonempty(answer).into_iter().collect();
        self.transcript.extend(messages.iter().cloned());
        self.record(answer.round(), Step::Answer, messages).await
    }

    pub(crate) async fn record_results(&mut self, answer: &ChatResponse, results: &[Message]) -> Result<()> {
        self.transcript.extend(results.iter().cloned());
        self.record(answer.round(), Step::Results, results.to_vec()).await
    }

    pub(crate) async fn record(&self, round: u32, step: Step, messages: Vec<Message>) -> Result<()> {
        self.request.turn.record(&Record::new(round, step, messages)).await
    }

    pub(crate) fn round_completed(&mut self, answer: &ChatResponse) -> Vec<Chunk> {
        let shown = self.filter(answer.round()).shows_round_end();
        shown.then(|| Chunk::RoundCompleted(answer.clone())).into_iter().collect()
    }

    pub(crate) fn finalize(&mut self, end: LoopEnd) {
        if std::mem::replace(&mut self.finalized, true) {
            return;
        }
        let outcome = LoopOutcome {
            end,
            rounds: self.counts.rounds,
            calls: self.counts.calls,
            usage: self.usage,
            transcript: self.transcript.clone(),
        };
        self.config.hooks.finalize(&outcome);
    }
}

impl Drop for LoopRun {
    fn drop(&mut self) {
        // A hook that panics here must not keep the rest of the turn from being dropped.
        let _ = catch_unwind(AssertUnwindSafe(|| self.finalize(LoopEnd::Dropped)));
    }
}

/// What of the messages that a hook added becomes part of the transcript. Calls and results do if they come together:
/// a hook that changes those of the turn changes what is sent, not what happened.
fn kept(added: Vec<Message>) -> Vec<Message> {
    let answered: HashSet<_> =
        added.iter().filter_map(|message| Some(message.tool_result()?.call_id.clone())).collect();
    let is_whole = |message: &Message| message.tool_calls().all(|call| answered.contains(&call.id));
    let called: HashSet<_> = added
        .iter()
        .filter(|message| is_whole(message))
        .flat_map(|message| message.tool_calls().map(|call| call.id.clone()))
        .collect();
    let is_kept = |message: &Message| match message.role() {
        Role::System => false,
        _ if message.is_ephemeral() => false,
        Role::Tool => message.tool_result().is_some_and(|result| called.contains(&result.call_id)),
        _ => is_whole(message),
    };
    added.into_iter().filter(is_kept).collect()
}

pub(crate) fn has_calls(message: &Message) -> bool {
    message.tool_calls().next().is_some()
}

/// The answer's message, unless it is empty: nothing empty is ever remembered or sent.
pub(crate) fn nonempty(answer: &ChatResponse) -> Option<Message> {
    Some(answer.message()).filter(|message| !message.is_empty_answer()).cloned()
}
