use std::collections::{BTreeSet, HashMap, HashSet};

use advisor_core::{CallKey, CallStart, Message, Role, StartedCalls, Turn, TurnEnd, TurnId};
use uuid::Uuid;

use crate::conversation::claim::Claim;
use crate::conversation::unfinished::{Unfinished, without_partial};
use crate::turn::prompt::{Addition, Prompt};
use crate::turn::resubmitted::EarlierRun;
use conversation_store::{BatchKey, BatchStep, EntryId, EntryKind, NewEntry, RoundStep, Version};

/// What memory knows of a turn that has begun.
#[derive(Debug)]
pub(crate) struct TurnState {
    pub(crate) claim: Claim,
    pub(crate) version: Version,
    /// The turn of the last entry at that version, if that is known.
    pub(crate) last_turn: Option<TurnId>,
    /// The entry that the next one follows, as long as the turn has branched off and written nothing.
    pub(crate) parent: Option<EntryId>,
    pub(crate) prompt: Prompt,
    /// How many entries of the conversation were read, if more may have to be.
    pub(crate) read: Option<usize>,
    /// How many turns before it no summary tells of.
    pub(crate) turns: usize,
    /// How often the chain inside memory was asked.
    pub(crate) passes: u32,
    /// The last round whose answer is stored.
    pub(crate) answered: u32,
    /// Whether that answer had calls.
    pub(crate) called: bool,
    /// The rounds whose answers are stored, each with all that was shown of it.
    stored: BTreeSet<u32>,
    /// What was begun to be appended, until it is known to be.
    pub(crate) pending: Option<Pending>,
    pub(crate) ended: Option<TurnEnd>,
    /// An end was to be written for a turn that will not go on.
    pub(crate) broken_off: bool,
    /// The turn went on after an end that was stored.
    pub(crate) resumed: bool,
    /// The version at which a turn that had stopped before began again.
    again: Option<Version>,
    /// The highest round of its earlier runs.
    rounds_above: u32,
    /// The calls whose start is stored, by this run of the turn or an earlier one.
    pub(crate) started: HashSet<CallKey>,
    /// How often each step of each round was written.
    steps: HashMap<(u32, RoundStep), u32>,
}

/// A write under its key, which makes it safe to be tried again.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) key: BatchKey,
    pub(crate) write: Write,
    /// An earlier try may have written it.
    pub(crate) unsure: bool,
}

/// Something to be appended, and what memory knows once it is.
#[derive(Debug)]
pub(crate) struct Write {
    round: u32,
    /// `None` for starts of calls, whose key no other run has.
    step: Option<RoundStep>,
    /// The round that its messages are stored with.
    of_round: Option<u32>,
    addition: Addition,
    starts: Vec<CallStart>,
    answered: Option<u32>,
    end: Option<TurnEnd>,
}

impl Write {
    pub(crate) fn new(round: u32, step: RoundStep, addition: Addition) -> Self {
        let step = Some(step);
        Self { round, step, of_round: None, addition, starts: Vec::new(), answered: None, end: None }
    }

    /// The starts of these calls.
    pub(crate) fn starts(round: u32, starts: Vec<CallStart>, addition: Addition) -> Self {
        Self { round, step: None, of_round: None, addition, starts, answered: None, end: None }
    }

    /// The same, whose messages are the answer and the results of this round.
    pub(crate) fn of_round(self, round: u32) -> Self {
        Self { of_round: Some(round), ..self }
    }

    /// The same, which makes the answer of its round known.
    pub(crate) fn answering(self) -> Self {
        Self { answered: Some(self.round), of_round: Some(self.round), ..self }
    }

    /// The same, with the end of the turn behind it.
    pub(crate) fn ending(self, end: TurnEnd) -> Self {
        Self { end: Some(end), ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.addition.stored.len() + self.starts.len() + usize::from(self.end.is_some())
    }

    pub(crate) fn entries(&self, turn: &TurnId) -> Vec<NewEntry> {
        self.kinds().map(|kind| NewEntry::new(turn.clone(), kind).with_round(self.of_round)).collect()
    }

    fn kinds(&self) -> impl Iterator<Item = EntryKind> {
        let messages = self.addition.stored.iter().cloned().map(EntryKind::Message);
        let starts = self.starts.iter().cloned().map(EntryKind::CallStarted);
        messages.chain(starts).chain(self.end.clone().map(EntryKind::TurnEnded))
    }

    fn answer(&self) -> Option<&Message> {
        self.addition.stored.last().filter(|message| message.role() == Role::Assistant)
    }
}

impl TurnState {
    pub(crate) fn new(claim: Claim, version: Version, prompt: Prompt) -> Self {
        Self {
            claim,
            version,
            last_turn: None,
            parent: None,
            prompt,
            read: None,
            turns: 0,
            passes: 0,
            answered: 0,
            called: false,
            stored: BTreeSet::new(),
            pending: None,
            ended: None,
            broken_off: false,
            resumed: false,
            again: None,
            rounds_above: 0,
            started: HashSet::new(),
            steps: HashMap::new(),
        }
    }

    /// The state of a turn before which no summary tells of so many, where the last entry is of this one, and which
    /// goes on behind `parent` if it branches off.
    pub(crate) fn following(self, turns: usize, last_turn: Option<TurnId>, parent: Option<EntryId>) -> Self {
        Self { turns, last_turn, parent, ..self }
    }

    /// Sets how many entries of the conversation were read; `None` if no more are needed.
    pub(crate) fn having_read(self, read: Option<usize>) -> Self {
        Self { read, ..self }
    }

    /// The state of a turn that had stopped before and goes on, after an earlier run.
    pub(crate) fn again(self, earlier: EarlierRun) -> Self {
        // Versions before rounds were stored have written answers without one. A round of which anything is stored has
        // at least one entry, so a hundred numbers for each leave room for rounds that were asked again.
        let entries = u32::try_from(self.version.as_u64()).unwrap_or(u32::MAX);
        let guess = if earlier.is_numbered { 0 } else { entries.saturating_mul(100).min(u32::MAX / 2) };
        let rounds_above = earlier.highest.max(guess);
        Self { again: Some(self.version), rounds_above, resumed: true, started: earlier.started, ..self }
    }

    /// Tells the loop what an earlier run of the turn did: which calls it has started, and up to where it numbered the
    /// rounds that are stored, so that no two calls of the turn have the same key. A call runs only when its answer is
    /// stored, so what was asked and not stored uses up no number.
    pub(crate) fn tell(&self, turn: &Turn) {
        if self.again.is_none() {
            return;
        }
        turn.number_rounds_above(self.rounds_above);
        turn.extensions()
            .update(|known: &mut StartedCalls| self.started.iter().for_each(|key| known.note(key.clone())));
    }

    /// This is to be appended next.
    pub(crate) fn put_in_line(&mut self, turn: &TurnId, write: Write) {
        let key = self.key(turn, &write);
        self.pending = Some(Pending { key, write, unsure: false });
    }

    /// The key of a write: that of its step, numbered if the step is written more than once. Where the turn began
    /// again, the version tells its keys from earlier ones.
    ///
    /// Starts are the exception. Another run that writes the same starts must not be told that they are written, for
    /// it would run the tools again: theirs is a key that no other run has.
    fn key(&mut self, turn: &TurnId, write: &Write) -> BatchKey {
        let Some(what) = write.step else {
            return BatchKey::new(turn.clone(), write.round, BatchStep::Starts(Uuid::now_v7()));
        };
        let times = self.steps.entry((write.round, what)).or_default();
        *times += 1;
        let step = BatchStep::Round { what, times: *times, resumed_at: self.again };
        BatchKey::new(turn.clone(), write.round, step)
    }

    /// What is written is known from now on.
    pub(crate) fn take_over(&mut self, write: Write) {
        self.version = self.version.after(write.len());
        if let Some(round) = write.answered {
            self.answered = round;
            self.stored.insert(round);
            self.called = write.answer().is_some_and(|answer| answer.tool_calls().next().is_some());
        }
        self.resumed &= write.end.is_none();
        self.prompt.take_over(write.addition);
        if matches!(write.end, Some(TurnEnd::Completed(_))) {
            self.prompt.leave_calls();
        }
        self.ended = write.end.or(self.ended.take());
        for start in write.starts {
            self.prompt.note_start(&start);
            self.started.insert(start.key);
        }
    }

    /// Whether the turn has ended so that its `end` in `round` says nothing new: an answer that is complete
    /// stays so, unless text of a later one was shown, and of several reasons to break off the first counts.
    pub(crate) fn has_ended_before(&self, round: u32, end: &TurnEnd) -> bool {
        match (&self.ended, end) {
            (None, _) => false,
            (Some(_), TurnEnd::Failed { partial } | TurnEnd::Interrupted { partial }) => {
                partial.is_empty() || self.stored.contains(&round)
            }
            (Some(ended), end) => ended == end,
        }
    }

    /// The end of `round` or of the turn, without the text that a stored answer holds.
    pub(crate) fn end_in(&self, round: u32, end: &TurnEnd) -> TurnEnd {
        if self.stored.contains(&round) { without_partial(end.clone()) } else { end.clone() }
    }

    /// What is left to be written of a turn that stopped in `round`; nothing if all is.
    pub(crate) fn unfinished(&self, turn: &TurnId, round: u32, end: &TurnEnd) -> Option<Unfinished> {
        if self.pending.is_none() && self.has_ended_before(round, end) {
            return None;
        }
        let resumed = self.resumed || self.ended.is_some();
        let unsure = self.pending.as_ref().map(|pending| pending.write.kinds().collect()).unwrap_or_default();
        let silent = Unfinished::beginning(turn.clone(), self.version, unsure);
        Some(Unfinished { end: self.end_in(round, end), resumed, ..silent })
    }
}
