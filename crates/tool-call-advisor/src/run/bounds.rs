//! The limits of the running loop: within those of the turn around, set by an advisor, after decided calls, or before
//! a last answer.

use std::pin::pin;
use std::sync::Arc;

use advisor_core::{Decisions, EndTurn, Error, ErrorKind, Limit, NestedBounds, Result, Turn};
use tokio::time::{Instant, timeout_at};

use crate::config::Config;
use crate::run::LoopRun;
use crate::run::decide::Counts;
use crate::{OnLimit, ToolLimits};

impl ToolLimits {
    /// Returns the time at which a turn that begins now ends.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.turn_timeout.and_then(|time| Instant::now().checked_add(time))
    }

    /// Returns these limits within those that the turn around has left.
    ///
    /// # Errors
    /// If more turns are around than the limit allows.
    fn within(&self, outer: NestedBounds) -> Result<Self> {
        if outer.depth > self.depth {
            let message = format!(
                "turns inside tools are nested more than {} deep; raise `ToolLimits::depth`, or keep the tool from \
                 asking its own chain",
                self.depth
            );
            return Err(Error::new(ErrorKind::Tool, message));
        }
        let least = |own: Option<u32>, left: Option<u32>| own.into_iter().chain(left).min();
        let left = outer.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        Ok(Self {
            rounds: least(self.rounds, outer.rounds),
            calls: least(self.calls, outer.calls),
            turn_timeout: self.turn_timeout.into_iter().chain(left).min(),
            ..self.clone()
        })
    }
}

/// Returns the limits of a turn: those of the configuration, within those of the turn around.
///
/// # Errors
/// If too many turns are around this one.
pub(crate) fn limits_of(config: &Config, turn: &Turn) -> Result<Arc<ToolLimits>> {
    match turn.inherited_bounds() {
        Some(outer) => config.limits.within(outer).map(Arc::new),
        None => Ok(Arc::clone(&config.limits)),
    }
}

/// States what a turn with these limits leaves to turns inside its tools.
pub(crate) fn state_bounds(turn: &Turn, limits: &ToolLimits, deadline: Option<Instant>, counts: &Counts) {
    let left = |limit: Option<u32>, used: u32| limit.map(|limit| limit.saturating_sub(used));
    let depth = turn.inherited_bounds().map_or(0, |outer| outer.depth);
    let mut bounds = NestedBounds::at_depth(depth.saturating_add(1));
    bounds.deadline = deadline;
    bounds.rounds = left(limits.rounds, counts.rounds);
    bounds.calls = left(limits.calls, counts.calls);
    // In place: the loop states them in each round.
    turn.extensions().update(|stated: &mut NestedBounds| *stated = bounds);
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
    let stated = turn.extensions().get::<NestedBounds>().and_then(|stated| stated.deadline);
    // A memory outside the loop runs the calls before the loop sets its time.
    let deadline = stated.or_else(|| limits.deadline());
    state_bounds(turn, limits, deadline, &counts);
    turn.extensions().insert(DecidedCalls { counts, deadline: deadline.filter(|_| stated.is_none()) });
    deadline
}

/// Returns the time at which a turn ends whose loop begins now.
pub(super) fn deadline_at_start(turn: &Turn, limits: &ToolLimits) -> Option<Instant> {
    let decided = turn.extensions().get::<DecidedCalls>().and_then(|decided| decided.deadline);
    limits.deadline().into_iter().chain(decided).min()
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
    let decisions = turn.extensions().get::<Decisions>()?;
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
        let set = || self.request.turn.extensions().get().map(|EndTurn(limit)| limit);
        self.time_is_over().or_else(|| self.closing.clone()).or_else(set)
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
