//! `TurnState`, `Write` and `PendingWrite`: progress of a started turn, pending appends and their keys.

use std::collections::{BTreeSet, HashSet};

use advisor_core::{CallKey, CallStart, Message, PendingCall, Turn, TurnEnd, TurnId};
use conversation_store::{BatchKey, EntryId, EntryKind, NewEntry, Version};

use crate::conversation::hold::Hold;
use crate::conversation::unfinished::{StoppedWhile, UnfinishedTurn, without_partial};
use crate::transcript::repair::{has_calls, is_answer};
use crate::turn::client_side::key_of_starts;
use crate::turn::prompt::{Addition, Prompt};
use crate::turn::stored_turn::EarlierRun;

/// The state of a turn that has begun.
pub(crate) struct TurnState {
    pub(crate) hold: Hold,
    pub(crate) version: Version,
    /// The turn of the last entry at that version, if known.
    pub(crate) last_turn: Option<TurnId>,
    /// The entry that the next one follows, while the turn has forked and written nothing.
    pub(crate) parent: Option<EntryId>,
    pub(crate) prompt: Prompt,
    /// The number of earlier turns that no summary covers.
    pub(crate) turns: usize,
    /// The number of requests of the turn to the chain inside memory.
    pub(crate) passes: u32,
    /// The last answer that is stored.
    pub(crate) answered: Option<Answered>,
    /// The rounds whose answers are stored, with all text that was shown of them.
    pub(super) stored: BTreeSet<u32>,
    /// The write that was started and is not confirmed yet.
    pub(crate) pending: Option<PendingWrite>,
    pub(crate) life: Life,
    /// The version at which the turn resumed, and its earlier run, if that had stopped.
    pub(super) resumed: Option<(Version, EarlierRun)>,
    /// The calls whose start is stored, by this run of the turn or an earlier one.
    pub(crate) started: HashSet<CallKey>,
}

/// Whether a turn runs. With `after_end`, it has continued after an end that may be stored.
#[derive(Debug)]
pub(crate) enum Life {
    Running {
        after_end: bool,
    },
    /// The turn will not continue, and its end is still to be written.
    BrokenOff {
        after_end: bool,
    },
    /// This end is stored.
    Ended(TurnEnd),
}

impl Life {
    /// Checks whether the log may have an end of the turn.
    pub(crate) fn has_stored_end(&self) -> bool {
        match self {
            Self::Running { after_end } | Self::BrokenOff { after_end } => *after_end,
            Self::Ended(_) => true,
        }
    }
}

/// A stored answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) round: u32,
    pub(crate) has_calls: bool,
}

/// A write and its idempotency key, which makes retries safe.
#[derive(Debug)]
pub(crate) struct PendingWrite {
    pub(crate) key: BatchKey,
    pub(crate) write: Write,
    /// Whether an earlier attempt may have written it.
    pub(crate) unsure: bool,
}

/// Entries to append, and the changes of the state once they are appended.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) round: u32,
    /// `None` for starts of calls, whose key no other run has.
    pub(crate) step: Option<&'static str>,
    /// The messages.
    pub(crate) addition: Addition,
    /// The round of which its messages are the answer or results.
    pub(crate) message_round: Option<u32>,
    /// Whether the last message is the answer of its round.
    pub(crate) answers: bool,
    pub(crate) starts: Vec<CallStart>,
    /// The calls that wait for a person. They follow the messages.
    pub(crate) pending: Vec<PendingCall>,
    /// The end of the turn. It follows everything else.
    pub(crate) end: Option<TurnEnd>,
}

impl Write {
    /// Creates a write of messages, in a step of a round.
    pub(crate) fn new(round: u32, step: impl Into<Option<&'static str>>, addition: Addition) -> Self {
        Self {
            round,
            step: step.into(),
            addition,
            message_round: None,
            answers: false,
            starts: Vec::new(),
            pending: Vec::new(),
            end: None,
        }
    }

    /// Creates a write of the answer of a round.
    pub(crate) fn answer_of(round: u32, addition: Addition) -> Self {
        Self { answers: true, message_round: Some(round), ..Self::new(round, "answer", addition) }
    }

    pub(crate) fn len(&self) -> usize {
        self.addition.stored.len() + self.starts.len() + self.pending.len() + usize::from(self.end.is_some())
    }

    pub(crate) fn entries(&self, turn: &TurnId) -> Vec<NewEntry> {
        self.kinds().map(|kind| NewEntry::new(turn.clone(), kind).with_round(self.message_round)).collect()
    }

    fn kinds(&self) -> impl Iterator<Item = EntryKind> {
        let messages = self.addition.stored.iter().cloned().map(EntryKind::Message);
        let starts = self.starts.iter().cloned().map(EntryKind::CallStarted);
        let pending = self.pending.iter().cloned().map(EntryKind::CallPending);
        messages.chain(starts).chain(pending).chain(self.end.clone().map(EntryKind::TurnEnded))
    }

    fn answer(&self) -> Option<&Message> {
        self.addition.stored.last().filter(|message| is_answer(message))
    }
}

impl TurnState {
    /// Creates the state of a turn with this prompt, resumed after an earlier run if there is one.
    pub(crate) fn new(hold: Hold, version: Version, prompt: Prompt, earlier_run: Option<EarlierRun>) -> Self {
        let started = earlier_run.as_ref().map(|earlier| earlier.started.clone()).unwrap_or_default();
        Self {
            hold,
            version,
            last_turn: None,
            parent: None,
            prompt,
            turns: 0,
            passes: 0,
            answered: None,
            stored: BTreeSet::new(),
            pending: None,
            life: Life::Running { after_end: earlier_run.is_some() },
            resumed: earlier_run.map(|earlier| (version, earlier)),
            started,
        }
    }

    /// Reports to the loop which rounds an earlier run of the turn has stored, which calls it has started, and its highest stored round. So no
    /// two calls of the turn have the same key. A call runs only when its answer is stored, so rounds that were
    /// not stored need no number.
    pub(crate) fn report_earlier_run(&mut self, turn: &Turn) {
        let Some((version, earlier)) = &mut self.resumed else { return };
        turn.number_rounds_above(earlier.rounds_at(*version));
        turn.facts(|facts| {
            facts.earlier_rounds = std::mem::take(&mut earlier.rounds);
            facts.started.extend(self.started.iter().cloned());
        });
    }

    /// Makes a write the next one to append.
    pub(crate) fn set_pending(&mut self, turn: &TurnId, write: Write) {
        let key = self.key(turn, &write);
        self.pending = Some(PendingWrite { key, write, unsure: false });
    }

    /// Returns the key of a write: its step and the version at which it is written. If the turn was resumed, the
    /// version at which it was distinguishes its keys from those of earlier runs.
    fn key(&self, turn: &TurnId, write: &Write) -> BatchKey {
        let Some(what) = write.step else { return key_of_starts(turn, write.round) };
        let step = match &self.resumed {
            Some((resumed_at, _)) => format!("{what}-{}-resumed-{resumed_at}", self.version),
            None => format!("{what}-{}", self.version),
        };
        BatchKey::new(turn.clone(), write.round, step)
    }

    /// Updates the state after a write was stored.
    pub(crate) fn note_stored(&mut self, write: Write) {
        self.version = self.version.after(write.len());
        if write.answers {
            let has_calls = write.answer().is_some_and(has_calls);
            self.answered = Some(Answered { round: write.round, has_calls });
            self.stored.insert(write.round);
        }
        self.prompt.apply(write.addition);
        if matches!(write.end, Some(TurnEnd::Completed(_))) {
            self.prompt.leave_calls();
        }
        if let Some(end) = write.end {
            self.life = Life::Ended(end);
        }
        for start in write.starts {
            self.prompt.note_start(&start);
            self.started.insert(start.key);
        }
    }

    /// Notes that the turn will not continue.
    pub(crate) fn break_off(&mut self) {
        if let Life::Running { after_end } = self.life {
            self.life = Life::BrokenOff { after_end };
        }
    }

    /// Checks whether the turn has ended so that `end` in `round` adds nothing. A completed answer stays complete
    /// unless text of a later one was shown. Of several reasons to stop, the first counts.
    pub(crate) fn has_ended_before(&self, round: u32, end: &TurnEnd) -> bool {
        let Life::Ended(ended) = &self.life else { return false };
        match end {
            TurnEnd::Failed { partial } | TurnEnd::Interrupted { partial } => {
                partial.is_empty() || self.stored.contains(&round)
            }
            // The text of a completed answer was shown before.
            TurnEnd::Refused => matches!(ended, TurnEnd::Completed(_) | TurnEnd::Refused),
            end => ended == end,
        }
    }

    /// Returns the end of `round` or of the turn, without the text that a stored answer holds.
    pub(crate) fn end_in(&self, round: u32, end: &TurnEnd) -> TurnEnd {
        if self.stored.contains(&round) { without_partial(end.clone()) } else { end.clone() }
    }

    /// Returns the unwritten rest of a turn that stopped in `round`; `None` if all is written.
    pub(crate) fn unfinished(&self, turn: &TurnId, round: u32, end: &TurnEnd) -> Option<UnfinishedTurn> {
        if self.pending.is_none() && self.has_ended_before(round, end) {
            return None;
        }
        let stopped = if self.life.has_stored_end() { StoppedWhile::AfterEnd } else { StoppedWhile::Running };
        let end = self.end_in(round, end);
        let unsure = self.pending.as_ref().map(|pending| pending.write.kinds().collect()).unwrap_or_default();
        Some(UnfinishedTurn { end, stopped, ..UnfinishedTurn::new(turn.clone(), self.version, unsure) })
    }
}

#[cfg(test)]
mod tests;
