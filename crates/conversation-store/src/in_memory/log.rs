//! `Log`: one conversation in memory: its entries, its batches by key, its lease.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::time::Duration;

use advisor_core::TurnId;
use tokio::time::Instant;

use super::entries::Entries;
use crate::{
    Admission, Batch, BatchKey, FencingToken, LogState, ReadRange, Result, StoreError, Version, WaitingTurns,
    admit,
};

/// One conversation.
#[derive(Default)]
pub(super) struct Log {
    pub(super) entries: Entries,
    /// The position of each batch's entries.
    batches: HashMap<BatchKey, Range<usize>>,
    /// The highest token that was issued, or used by an append.
    pub(super) token: Option<FencingToken>,
    held: Option<Held>,
    waiting: WaitingTurns,
}

pub(super) struct Held {
    pub(super) turn: TurnId,
    pub(super) until: Instant,
}

impl Log {
    /// Creates a log that accepts no token below this one.
    pub(super) fn behind(token: Option<FencingToken>) -> Self {
        Self { token, ..Self::default() }
    }

    /// Returns whether it has neither entries nor a lease.
    pub(super) fn is_blank(&self) -> bool {
        !self.entries.exist() && self.held.is_none()
    }

    /// Returns whether no lease is held and the last turn has ended.
    pub(super) fn is_idle(&self) -> bool {
        self.holder().is_none()
            && self.entries.snapshot(self.entries.tip(), ReadRange::LastEntries(0)).open_turn.is_none()
    }

    /// Checks whether a turn may acquire the lease. If it may not and `waits`, it takes a place in the queue.
    pub(super) fn may_hold(
        &mut self,
        turn: &TurnId,
        takeover_from: Option<FencingToken>,
        waits: bool,
        now: (Instant, Duration),
    ) -> Result {
        let (now, since_start) = now;
        self.waiting.expire(since_start);
        // Without a lease, the conversation has no token that could be taken over.
        let takes_over = self.held.is_some() && takeover_from.is_some() && takeover_from == self.token;
        let held = self.held.as_ref();
        let passes = takes_over && held.is_some_and(|held| held.turn == *turn);
        let holder = held.filter(|held| held.until > now && !takes_over);
        let busy = match (holder, self.waiting.ahead_of(turn, takes_over, since_start)) {
            (Some(held), _) => Some((held.turn.clone(), held.until.saturating_duration_since(now))),
            (None, Some(_)) if passes => None,
            (None, ahead) => ahead.map(|(turn, remaining)| (turn.clone(), remaining)),
        };
        let Some((by, remaining)) = busy else {
            self.waiting.leave(turn);
            return Ok(());
        };
        if waits {
            self.waiting.wait(turn, since_start);
        }
        // A turn waits only where a lease was issued.
        let token = self.token.unwrap_or(FencingToken::new(0));
        Err(StoreError::Locked { turn: by, token, remaining })
    }

    /// Gives the lease to a turn, with this token, until a time.
    pub(super) fn hold(&mut self, turn: TurnId, token: FencingToken, until: Instant) {
        (self.token, self.held) = (Some(token), Some(Held { turn, until }));
    }

    /// Changes the expiry of the lease, if this token is the latest.
    pub(super) fn hold_until(&mut self, token: FencingToken, until: Instant) -> Option<()> {
        self.held.as_mut().filter(|_| self.token == Some(token))?.until = until;
        Some(())
    }

    /// Removes everything but the lease.
    pub(super) fn clear(&mut self) {
        (self.entries, self.batches) = Default::default();
    }

    pub(super) fn holder(&self) -> Option<&Held> {
        self.held.as_ref().filter(|held| held.until > Instant::now())
    }

    /// Appends a batch. No new turn starts in a conversation of `most_entries` entries or more.
    pub(super) fn append(
        &mut self,
        expected: Version,
        batch: Batch,
        most_entries: Option<NonZeroUsize>,
    ) -> Result<Version> {
        let applied = self.batches.get(&batch.key).map(|range| self.entries.applied(range, &batch));
        let (version, last_turn) = (self.entries.version(), self.entries.last_turn());
        let state = LogState { version, token: self.token, last_turn, applied };
        if let Admission::Done(version) = admit(&state, expected, &batch)? {
            return Ok(version);
        }
        if let Some(limit) = most_entries.map(NonZeroUsize::get)
            && self.entries.len() >= limit
            && self.entries.are_of_other_turns(&batch)
        {
            return Err(StoreError::ConversationFull { limit });
        }
        self.token = batch.token.or(self.token);
        self.batches.insert(batch.key.clone(), self.entries.extend(batch));
        Ok(self.entries.version())
    }
}
