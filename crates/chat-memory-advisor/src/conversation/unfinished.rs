//! `UnfinishedTurn`: a stopped turn whose end is not written yet. `end_of` and `closing` say what is missing in its log,
//! `Registry::close` writes it.

use advisor_core::{ConversationKey, Message, Role, Text, TurnEnd, TurnId};
use conversation_store::{
    Batch, BatchKey, ConversationStore, Entry, EntryKind, FencingToken, NewEntry, ReadRange, StoreError,
    Version, last_end, same_turn,
};

use crate::conversation::{OVERHEAD, Registry, append_once, change_in_time, read_in_time};
use crate::transcript::repair::{answer_in, is_answer, open_calls};

/// A turn that stopped before its end was written, and how to close it.
#[derive(Debug, Clone)]
pub(crate) struct UnfinishedTurn {
    pub(crate) turn: TurnId,
    pub(crate) end: TurnEnd,
    /// The last version of the conversation that the turn knew; `None` if it is unknown.
    pub(crate) known: Option<Version>,
    /// The entries of the turn that were being written after `known`; the log may contain them.
    pub(crate) unsure: Vec<EntryKind>,
    pub(crate) stopped: StoppedWhile,
    /// The version after all entries that were being written, including those that close the previous turn.
    pub(crate) until: Option<Version>,
    /// The fencing token of the run's lease.
    pub(crate) token: Option<FencingToken>,
    /// Distinguishes it from other unfinished runs of the turn; `None` if it is not registered.
    pub(crate) number: Option<u64>,
    /// About how many bytes it takes, once it is registered.
    pub(crate) bytes: usize,
}

/// The progress of a turn when it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoppedWhile {
    /// It was new to this run, and was writing its first entries. Its entries up to `known` belong to another run.
    Beginning,
    /// It was running, or was resumed after an earlier run.
    Running,
    /// It had continued after an end that may be its last one in the log.
    AfterEnd,
}

impl UnfinishedTurn {
    /// Creates a turn of which nothing was shown, and whose first entries may be written after version `known`.
    pub(crate) fn new(turn: TurnId, known: impl Into<Option<Version>>, unsure: Vec<EntryKind>) -> Self {
        let (end, known) = (TurnEnd::Interrupted { partial: Text::default() }, known.into());
        let until = known.map(|known| known.after(unsure.len()));
        let stopped = StoppedWhile::Running;
        Self { turn, end, known, unsure, stopped, until, token: None, number: None, bytes: 0 }
    }

    /// Checks whether it records nothing except that the turn stopped.
    pub(crate) fn is_silent(&self) -> bool {
        let partial = Text::default();
        self.answer().is_none()
            && self.stopped != StoppedWhile::AfterEnd
            && self.end == TurnEnd::Interrupted { partial }
    }

    /// Counts its bytes.
    pub(crate) fn weighed(mut self) -> Self {
        let partial = match &self.end {
            TurnEnd::Failed { partial } | TurnEnd::Interrupted { partial } => partial.len(),
            _ => 0,
        };
        let unsure = self.unsure.iter().filter_map(|kind| serde_json::to_vec(kind).ok());
        let unsure: usize = unsure.map(|kind| kind.len()).sum();
        self.bytes = OVERHEAD + self.turn.as_str().len() + partial + unsure;
        self
    }

    /// Returns the same turn without its texts.
    pub(crate) fn without_texts(self) -> Self {
        let end = without_partial(self.end);
        // The entries that were being written count as known, so that it is not at its beginning.
        let stopped = match self.stopped {
            StoppedWhile::Beginning => StoppedWhile::Running,
            stopped => stopped,
        };
        Self { end, known: self.until, unsure: Vec::new(), stopped, ..self }.weighed()
    }

    /// Checks whether its end replaces one that the log has already.
    pub(crate) fn overrides(&self) -> bool {
        self.stopped == StoppedWhile::AfterEnd || self.end == TurnEnd::RolledBack
    }

    /// Checks whether this is the last run of the turn, given the turn's entries in the log. After the entries
    /// that it knew, the log may only have those that it was writing and those that closed it, up to an end. Results
    /// without an end are those of another run, which goes on.
    pub(crate) fn is_last_to_run(&self, entries: &[Entry]) -> bool {
        let is_known = |entry: &&Entry| self.known.is_none_or(|known| entry.seq <= known.0);
        let known = entries.iter().take_while(is_known).count();
        if self.stopped == StoppedWhile::Beginning && known > 0 {
            return false;
        }
        let later: Vec<_> = entries.iter().skip(known).map(|entry| &entry.kind).collect();
        let unsure: Vec<_> = self.unsure.iter().collect();
        let closing = later.strip_prefix(unsure.as_slice()).unwrap_or(&later);
        let has_end = closing.last().is_none_or(|last| matches!(last, EntryKind::TurnEnded(_)));
        has_end
            && closing.iter().all(|kind| match kind {
                EntryKind::Message(message) => message.role() == Role::Tool,
                EntryKind::TurnEnded(TurnEnd::Completed(_)) => false,
                EntryKind::TurnEnded(TurnEnd::RolledBack) => self.end == TurnEnd::RolledBack,
                EntryKind::TurnEnded(end) => *end == self.end || *end == without_partial(end.clone()),
                _ => false,
            })
    }

    /// Returns the end to close the turn with, given its entries in the log.
    pub(crate) fn end_of(&self, entries: &[Entry]) -> TurnEnd {
        let last = entries.iter().rev().find_map(|entry| entry.kind.as_message());
        // If the log has the answer, the answer holds the text that was shown.
        if self.answer().is_some() && self.answer() == last {
            return without_partial(self.end.clone());
        }
        self.end.clone()
    }

    fn answer(&self) -> Option<&Message> {
        let last = self.unsure.iter().rev().find_map(EntryKind::as_message);
        last.filter(|message| is_answer(message))
    }
}

/// Returns the same end without the shown text, which is remembered already.
pub(crate) fn without_partial(end: TurnEnd) -> TurnEnd {
    match end {
        TurnEnd::Failed { .. } => TurnEnd::Failed { partial: Text::default() },
        TurnEnd::Interrupted { .. } => TurnEnd::Interrupted { partial: Text::default() },
        end => end,
    }
}

/// The maximum attempts of a write while late writes of the same turn conflict with it.
pub(crate) const ATTEMPTS: usize = 4;

/// Returns the end of the turn of these entries, as far as the log and this process know it.
pub(crate) fn end_of(entries: &[Entry], unfinished: &[UnfinishedTurn]) -> TurnEnd {
    let turn = entries.first().map(|entry| &entry.turn);
    let known = unfinished.iter().find(|known| Some(&known.turn) == turn && known.is_last_to_run(entries));
    match (last_end(entries), known) {
        // A turn can continue or be rolled back after an end was written.
        (_, Some(known)) if known.overrides() => known.end_of(entries),
        (Some(end), _) => end.clone(),
        (None, Some(known)) => known.end_of(entries),
        (None, None) => TurnEnd::Interrupted { partial: Text::default() },
    }
}

/// Returns the entries that are missing for a turn to end with `end`. They are results for its open calls, apart
/// from those that `input` answers, and the end. Empty if nothing is missing.
pub(crate) fn closing(entries: &[Entry], end: &TurnEnd, input: &[Message]) -> Vec<NewEntry> {
    let Some(turn) = entries.first().map(|entry| &entry.turn) else { return Vec::new() };
    let (mut kinds, round) = (Vec::new(), round_of_calls(entries));
    if *end != TurnEnd::RolledBack {
        let mut calls = open_calls(entries);
        for message in input {
            calls.accept(message);
        }
        kinds.extend(calls.missing().into_iter().map(EntryKind::Message));
    }
    if !kinds.is_empty() || last_end(entries) != Some(end) {
        kinds.push(EntryKind::TurnEnded(end.clone()));
    }
    kinds.into_iter().map(|kind| NewEntry::new(turn.clone(), kind).with_round(round)).collect()
}

/// Ends the last turn of a log, as far as the log and this process know its end.
pub(crate) fn end_last_turn(log: &mut Vec<Entry>, unfinished: &[UnfinishedTurn]) {
    let last = log.chunk_by(same_turn).next_back().unwrap_or_default();
    let closing = closing(last, &end_of(last, unfinished), &[]);
    extend_with_planned(log, closing);
}

/// Checks whether the last turn of a log is one of those that run. One whose earlier run is unfinished is only about to
/// run again: until its log shows that, what that run showed counts.
pub(crate) fn ends_running(log: &[Entry], running: &[TurnId], unfinished: &[UnfinishedTurn]) -> bool {
    let entries = log.chunk_by(same_turn).next_back().unwrap_or_default();
    entries.last().is_some_and(|last| {
        running.contains(&last.turn)
            && !matches!(last.kind, EntryKind::TurnEnded(_))
            && !unfinished.iter().any(|known| known.turn == last.turn && known.is_last_to_run(entries))
    })
}

/// Appends planned entries to a log, with the numbers that follow its last entry.
pub(crate) fn extend_with_planned(log: &mut Vec<Entry>, planned: impl IntoIterator<Item = NewEntry>) {
    for new in planned {
        let seq = log.last().map_or(0, |last| last.seq).saturating_add(1);
        log.push(Entry::new(seq, new.turn, new.kind));
    }
}

/// Returns the round of the last answer among these entries, if known.
pub(crate) fn round_of_calls(entries: &[Entry]) -> Option<u32> {
    entries.iter().rev().find(|entry| answer_in(entry).is_some())?.round
}

impl Registry {
    /// Closes an unfinished turn of this process, unless it is closed already or another turn closes it.
    ///
    /// # Errors
    /// Those of the store; the turn stays unfinished.
    pub(crate) async fn close(
        &self,
        store: &dyn ConversationStore,
        key: &ConversationKey,
        unfinished: &UnfinishedTurn,
    ) -> Result<(), StoreError> {
        let closed = self.try_close(store, key, unfinished).await;
        self.note_closed(key, unfinished, closed)
    }

    /// Writes the end of an unfinished turn, which stays registered. Does nothing if the turn has ended or another one
    /// has begun. Nor if the same turn continues: it continues here if it is not registered any more, or in another
    /// process.
    ///
    /// # Errors
    /// [`Fenced`](StoreError::Fenced) if another turn holds the conversation by now, in this process or elsewhere.
    pub(crate) async fn try_close(
        &self,
        store: &dyn ConversationStore,
        key: &ConversationKey,
        unfinished: &UnfinishedTurn,
    ) -> Result<(), StoreError> {
        let token = self.lease(key).token.max(unfinished.token);
        let mut attempts = 0;
        loop {
            let snapshot = read_in_time(store.load(key, ReadRange::LastTurns(1))).await?;
            let entries = snapshot.entries.chunk_by(same_turn).next_back().unwrap_or_default();
            let end = end_of(entries, std::slice::from_ref(unfinished));
            let is_last = entries.first().is_some_and(|entry| entry.turn == unfinished.turn);
            // The calls at the end of a completed turn are for the caller to answer.
            let goes_on = !self.is_unfinished(key, unfinished) || !unfinished.is_last_to_run(entries);
            if !is_last || last_end(entries) == Some(&end) || goes_on {
                return Ok(());
            }
            // A turn that continues after its end can be closed again, at another version.
            let step = format!("closed-{}", snapshot.version);
            let key_of_batch = BatchKey::new(unfinished.turn.clone(), 0, step);
            let batch = Batch::new(key_of_batch, closing(entries, &end, &[]))
                .with_token(token)
                .with_last_turn(unfinished.turn.clone());
            attempts += 1;
            match append_once(store, key, snapshot.version, batch).await {
                Err(StoreError::Conflict { .. }) if attempts < ATTEMPTS => {}
                outcome => return outcome.map(drop),
            }
        }
    }

    /// Closes all unfinished turns of this process, in all conversations, and releases the leases that no turn
    /// needs. Returns the first failure of the store.
    pub(crate) async fn close_all(&self, store: &dyn ConversationStore) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        for (key, unfinished) in self.all_unfinished() {
            let closed = self.close(store, &key, &unfinished).await;
            outcome = outcome.and(closed);
        }
        let Some(leases) = store.leases() else { return outcome };
        for (key, token) in self.idle_tokens() {
            let released = change_in_time(leases.release(&key, token)).await;
            if released.is_ok() {
                self.note_released(&key, token);
            }
            outcome = outcome.and(released);
        }
        outcome
    }

    /// Handles the outcome of closing a turn. If another turn holds the conversation by now, that turn closes the
    /// earlier ones. A turn of this process does so with the shown text, which is kept for it. A turn of another
    /// process does so without it.
    pub(crate) fn note_closed(
        &self,
        key: &ConversationKey,
        unfinished: &UnfinishedTurn,
        closed: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let is_it = |known: &UnfinishedTurn| known.number == unfinished.number;
        match closed {
            Ok(()) => self.forget(key, is_it),
            Err(StoreError::Fenced) if self.is_used_after(key, unfinished) => {}
            Err(StoreError::Fenced) => {
                tracing::warn!(
                    conversation = %key,
                    turn = %unfinished.turn,
                    "another process continued the conversation before a dropped turn was closed, and the text that the turn had shown is lost"
                );
                self.forget(key, is_it);
            }
            failed => return failed,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
