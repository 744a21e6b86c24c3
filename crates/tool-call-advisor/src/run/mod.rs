//! `LoopRun`: the state of one turn; opens rounds and acts on decisions after each round.
//!
//! The loop knows no memory. It asks the chain whether one is inside, announces its start inwards (`on_loop_start`), and
//! tells the turn's recorders what has become final.

mod at_most_once;
mod before_tools;
pub(crate) mod bounds;
pub(crate) mod client_side_answer;
pub(crate) mod decide;
mod direct_answer;
mod earlier_rounds;
mod finish;
mod history;
mod out_of_time;
pub(crate) mod run_tools;
mod same_calls;
mod steer;
mod step;
pub(crate) mod stream;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, BlockId, ChatRequest, ChatResponse, Chunk, Decisions, LastAnswer, Limit, Result,
    ToolChoice, ToolEvent, ToolSet, Usage, drop_caught,
};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::Instrument;

use crate::config::Config;
use crate::execution::tool_events::ToolEvents;
use crate::run::bounds::{deadline_at_start, limits_of, opened_before, state_bounds};
use crate::run::decide::Counts;
use crate::run::history::in_call_order;
use crate::run::same_calls::Fingerprint;
use crate::run::step::{Next, Outcome};
use crate::streaming::Filter;
use crate::{LoopEnd, LoopOutcome, ToolCallStreaming, ToolLimits};

/// Maximum number of buffered tool events.
const WAITING_EVENTS: usize = 16;

/// State of one turn of the loop, and its steps between rounds.
pub(crate) struct LoopRun {
    config: Arc<Config>,
    /// The limits of the configuration, within those of the turn around.
    limits: Arc<ToolLimits>,
    next: AdvisorChain,
    /// The request to send in the next round, or the one sent in the running round.
    request: ChatRequest,
    own_history: bool,
    counts: Counts,
    /// The calls of the running round that later ones may equal.
    compared: Vec<(BlockId, Fingerprint)>,
    usage: Option<Usage>,
    deadline: Option<Instant>,
    last_round: LastRound,
    /// The limit for which the model is asked for a last answer, without tools.
    closing: Option<Limit>,
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
    /// Creates the loop of a turn.
    ///
    /// # Errors
    /// If too many turns are around this one.
    pub(crate) fn new(config: Arc<Config>, mut request: ChatRequest, next: AdvisorChain) -> Result<Self> {
        request.messages = in_call_order(request.messages);
        let own_history = config.history.is_in_loop(&next);
        let limits = limits_of(&config, &request.turn)?;
        let deadline = deadline_at_start(&request.turn, &limits);
        Ok(Self {
            config,
            limits,
            next,
            request,
            own_history,
            counts: Counts::default(),
            compared: Vec::new(),
            usage: None,
            deadline,
            last_round: LastRound::Unknown,
            closing: None,
            finalized: false,
        })
    }

    /// Runs the start hook and opens the first round.
    async fn begin(&mut self) -> Result<Outcome> {
        // Checked before memory records the start of the turn.
        self.next.validate_tools(&self.request.tools)?;
        self.next.on_loop_start(&self.request)?;
        self.record_added().await?;
        if self.request.turn.extensions().get::<Decisions>().is_some() {
            // Approved calls run inside memory, when the first round opens.
            state_bounds(&self.request.turn, &self.limits, self.deadline, &self.counts);
        }
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
        if let Some(limit) = self.limit_before(round) {
            return Box::pin(self.end_at_limit(limit)).await;
        }
        if self.closing.is_some() {
            self.request.options.tool_choice = Some(ToolChoice::None);
            self.request.turn.extensions().insert(LastAnswer);
        }
        self.counts.rounds = round;
        let span = tracing::info_span!("round", round);
        let opening = self.next.next_stream(self.request.clone()).instrument(span.clone());
        let opened = opened_before(self.deadline, &self.request.turn, opening).await;
        if round == 1 {
            self.count_decided();
        }
        match opened {
            Some(stream) => Ok(Outcome::new(Vec::new(), Next::Read(stream?.in_span(span)))),
            None => Box::pin(self.end_at_limit(self.time_limit())).await,
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
            let no_round_left = self.limits.rounds.is_some_and(|rounds| self.counts.rounds >= rounds);
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
        (events.within(self.limits.of_result()), Some(receiver))
    }

    fn time_is_over(&self) -> Option<Limit> {
        let over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        over.then(|| self.time_limit())
    }

    fn time_limit(&self) -> Limit {
        let time = self.limits.turn_timeout.unwrap_or_default();
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
