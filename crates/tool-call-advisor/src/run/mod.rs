//! `LoopRun`: the state of one turn; opens rounds, within its limits.
//!
//! The loop knows no memory. It asks the chain whether one is inside, announces its start inwards (`on_loop_start`), and
//! tells the turn's recorders what has become final.

pub(crate) mod decide;
pub(crate) mod end;
mod history;
pub(crate) mod round;
mod same_calls;
mod stream;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorRole, BlockId, ChatRequest, ChatResponse, Chunk, Limit, LoopHistory, NestedBounds,
    Result, ToolChoice, ToolEvent, ToolSet, Turn, Usage, drop_caught,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::advisor::Config;
use crate::execution::ToolEvents;
use crate::run::decide::Counts;
use crate::run::history::in_call_order;
use crate::run::same_calls::Fingerprint;
use crate::run::stream::Filter;
use crate::run::stream::{Next, Outcome};
use crate::{LoopEnd, LoopOutcome, OnLimit, ToolCallStreaming, ToolLimits};

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
        let own_history = match config.placement.role {
            AdvisorRole::ToolLoop(LoopHistory::InLoop) => true,
            AdvisorRole::ToolLoop(LoopHistory::InMemory) => false,
            _ => !next.has_memory(),
        };
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
        if self.request.turn.decisions().is_some() {
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
            self.request.turn.facts(|facts| facts.is_last_answer = true);
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
        let (events, receiver) = ToolEvents::channel(WAITING_EVENTS, Arc::clone(&self.limits));
        (events, Some(receiver))
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

/// Returns the limits of a turn: those of the configuration, within those of the turn around.
///
/// # Errors
/// If too many turns are around this one.
pub(crate) fn limits_of(config: &Config, turn: &Turn) -> Result<Arc<ToolLimits>> {
    match turn.facts(|facts| facts.inherited_bounds) {
        Some(outer) => config.limits.within(outer).map(Arc::new),
        None => Ok(Arc::clone(&config.limits)),
    }
}

/// States what a turn with these limits leaves to turns inside its tools.
pub(crate) fn state_bounds(turn: &Turn, limits: &ToolLimits, deadline: Option<Instant>, counts: &Counts) {
    let left = |limit: Option<u32>, used: u32| limit.map(|limit| limit.saturating_sub(used));
    turn.facts(|facts| {
        facts.nested_bounds = Some(NestedBounds {
            deadline,
            rounds: left(limits.rounds, counts.rounds),
            calls: left(limits.calls, counts.calls),
            depth: facts.inherited_bounds.map_or(1, |outer| outer.depth.saturating_add(1)),
        });
    });
}

/// The decided calls of a turn, which its loop counts. An extension of the turn.
#[derive(Clone)]
struct DecidedCalls {
    counts: Counts,
    /// The time at which the turn ends, if the calls ran before its loop began.
    deadline: Option<Instant>,
}

/// Notes the decided calls for the loop of their turn, and states what they leave to turns inside their tools. Returns
/// the time at which the turn ends.
pub(crate) fn note_decided(turn: &Turn, limits: &ToolLimits, counts: Counts) -> Option<Instant> {
    // What a caller has run before has a time of its own, not that of the loop.
    let is_of_loop = time_of_decided(turn).is_none();
    let stated = turn.facts(|facts| facts.nested_bounds?.deadline).filter(|_| is_of_loop);
    // A memory outside the loop runs the calls before the loop sets its time.
    let deadline = stated.or_else(|| limits.deadline());
    state_bounds(turn, limits, deadline, &counts);
    turn.extensions().insert(DecidedCalls { counts, deadline: deadline.filter(|_| stated.is_none()) });
    deadline
}

/// Returns the time at which a turn ends whose loop begins now.
pub(super) fn deadline_at_start(turn: &Turn, limits: &ToolLimits) -> Option<Instant> {
    limits.deadline().into_iter().chain(time_of_decided(turn)).min()
}

fn time_of_decided(turn: &Turn) -> Option<Instant> {
    turn.extensions().get::<DecidedCalls>()?.deadline
}

/// Waits for a round to open, until the time of the turn is over. Approved calls that run then end by themselves at that
/// time, and their results are stored first.
pub(super) async fn opened_before<T>(
    deadline: Option<Instant>,
    turn: &Turn,
    opening: impl Future<Output = T>,
) -> Option<T> {
    let Some(deadline) = deadline else { return Some(opening.await) };
    let mut opening = pin!(opening);
    if let Ok(opened) = timeout_at(deadline, &mut opening).await {
        return Some(opened);
    }
    let decisions = turn.decisions()?;
    tokio::select! {
        biased;
        opened = opening => Some(opened),
        () = decisions.settled() => None,
    }
}

impl LoopRun {
    /// Counts the decided calls, which ran before the first round opened.
    pub(super) fn count_decided(&mut self) {
        if let Some(decided) = self.request.turn.extensions().get::<DecidedCalls>() {
            self.counts = Counts { rounds: self.counts.rounds, ..decided.counts };
        }
    }

    /// Returns the limit at which the turn is to end, if one is reached or was set by an advisor.
    pub(super) fn limit_reached(&self) -> Option<Limit> {
        let requested = || self.request.turn.facts(|facts| facts.requested_end.clone());
        self.time_is_over().or_else(|| self.closing.clone()).or_else(requested)
    }

    /// Notes that the next answer is the last one, given without tools, since this limit is reached. Returns the limit
    /// if the turn ends without such an answer.
    pub(super) fn close_at(&mut self, limit: Limit) -> Option<Limit> {
        if !self.may_close(&limit) {
            return Some(limit);
        }
        self.closing = Some(limit);
        None
    }

    /// Checks whether the model is asked for an answer without tools, now that this limit is reached.
    pub(super) fn may_close(&self, limit: &Limit) -> bool {
        let has_round = self.limits.rounds.is_none_or(|rounds| self.counts.rounds < rounds);
        let is_wanted = self.limits.on_limit == OnLimit::AnswerWithoutTools;
        is_wanted && has_round && self.closing.is_none() && !matches!(limit, Limit::Time(_))
    }

    /// Returns the limit at which the turn ends before this round. If the round is the last one, the model may be asked
    /// for an answer without tools.
    pub(super) fn limit_before(&mut self, round: u32) -> Option<Limit> {
        let reached = self.limit_reached().filter(|limit| self.closing.as_ref() != Some(limit));
        if let Some(limit) = reached.and_then(|limit| self.close_at(limit)) {
            return Some(limit);
        }
        let rounds = self.limits.rounds.filter(|rounds| round >= *rounds)?;
        if round > rounds {
            return Some(Limit::Rounds(rounds));
        }
        if self.limits.on_limit == OnLimit::AnswerWithoutTools {
            self.closing.get_or_insert(Limit::Rounds(rounds));
        }
        None
    }
}
