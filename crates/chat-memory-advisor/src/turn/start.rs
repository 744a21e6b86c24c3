//! The start of a turn: reads the conversation, plans what is written and sent, and appends the input; again after a
//! conflict. Also `ForkPoint`, at which a turn forks off.

use advisor_core::{ChatResponse, Error, ErrorKind, Message, Result, Role, TurnEnd, TurnId};
use conversation_store::{
    Batch, BatchKey, Entry, EntryId, EntryKind, NewEntry, ReadRange, Snapshot, StoreError, Summary, Version,
    same_turn,
};

use crate::OnOverflow;
use crate::conversation::hold::Hold;
use crate::conversation::unfinished::{
    ATTEMPTS, StoppedWhile, UnfinishedTurn, closing, end_of, extend_with_planned, round_of_calls,
};
use crate::conversation::{append_once, find_in_log};
use crate::transcript::repair::{
    OpenCalls, Repair, is_answer, is_remembered, last_with_messages, open_calls, results_first, whole_turns,
};
use crate::transcript::summary::{UnwrittenSummary, after, last_summary, message_of};
use crate::transcript::window::Measure;
use crate::turn::TurnMemoryState;
use crate::turn::prompt::Prompt;
use crate::turn::state::TurnState;
use crate::turn::stored_turn::{EarlierRun, StoredTurn, used};

/// The place where a turn forks off, given to the turn as an extension. The conversation continues from there, and
/// later entries stay on a separate branch.
///
/// The turn sees the conversation up to that place; its window, its repair and its closing entries belong to that
/// branch. From its first append on, further turns continue its branch. If the fork cuts a turn, that turn is
/// closed on the new branch as one that stopped there. On its own branch it stays as it is.
///
/// A turn that is submitted again under its id is found as long as its branch is the one written last; otherwise
/// it is refused.
///
/// # Errors
/// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if the conversation has no such turn or
/// entry.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ConversationKey, TurnId};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use chat_memory_advisor::{ForkPoint, ChatMemoryAdvisor, InMemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
/// let model = ScriptedModel::new(["Hello Ada.", "Hello Grace."].map(Answer::from_text));
/// let client = ChatClient::builder(model).advisor(memory.clone()).build()?;
/// let first = TurnId::new("first")?;
/// client.prompt().user("I am Ada.").conversation("c").turn(first.clone()).call().await?;
///
/// // Edits the message. The earlier one is kept on the older branch.
/// let edited = client.prompt().user("I am Grace.").conversation("c").extension(ForkPoint::Before(first));
/// assert_eq!(edited.call().await?.text(), "Hello Grace.");
/// assert_eq!(memory.transcript(&ConversationKey::new("c")?).await?.len(), 2);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForkPoint {
    /// In place of this turn, on any branch: to send another input, or to have the same one answered again. The branch
    /// written last is searched from its end, the others from the beginning of the log.
    ///
    /// The model does not see the turn that is replaced. So it may call a tool again whose effect that turn had,
    /// such as a refund: [`Effect::AtMostOnce`](advisor_core::Effect) holds for each call.
    Before(TurnId),
    /// After this entry: the tip of an older branch, to continue that branch, or any other entry.
    After(EntryId),
}

/// The start of a turn.
#[derive(Debug)]
pub(crate) enum StartOutcome<T> {
    /// The model is asked.
    Asking(T),
    /// The turn was answered before.
    Answered(ChatResponse),
}

/// The attempts of a turn to begin with an input.
pub(crate) struct Start<'a> {
    memory: &'a TurnMemoryState,
    said: &'a [Message],
    /// Whether the whole conversation is read, and not only what the turn sends.
    reads_all: bool,
    attempts: usize,
    /// The turn that was open at the last attempt.
    open: Option<TurnId>,
}

impl<'a> Start<'a> {
    pub(crate) fn new(memory: &'a TurnMemoryState, said: &'a [Message]) -> Self {
        Self { memory, said, reads_all: false, attempts: 0, open: None }
    }

    /// Stores the input behind the conversation as it is read.
    pub(super) async fn run(mut self, mut hold: Hold) -> Result<StartOutcome<TurnState>> {
        loop {
            let (planned, too_large) = self.read().await?;
            let plan = match planned {
                StartOutcome::Asking(plan) => plan,
                StartOutcome::Answered(answer) => {
                    hold.unconfirmed = None;
                    return Ok(StartOutcome::Answered(answer));
                }
            };
            // An earlier run of the turn may still be unfinished; this run has nothing to add to it.
            if plan.earlier_run.is_none() || !self.has_unfinished_run() {
                hold.unconfirmed = plan.unsure(&self.memory.turn).or(hold.unconfirmed.take());
            }
            if hold.is_lost() {
                return Err(StoreError::Fenced.into());
            }
            match self.append(&plan).await {
                Ok(version) if version == plan.end() => {
                    self.memory.registry.note_summary_written(&self.memory.key, plan.summarized_until());
                    self.memory.note_results_stored();
                    if let Some(error) = too_large {
                        // The hold has the turn as unconfirmed, so its end is written.
                        return Err(error);
                    }
                    hold.unconfirmed = None;
                    return Ok(StartOutcome::Asking(self.state(hold, version, plan)));
                }
                outcome => self.retry_after(outcome)?,
            }
        }
    }

    /// Reads as much of the conversation as the turn needs, and plans the start on it. If results of calls that have run
    /// are stored although the turn is too large for the model, returns that error, too.
    pub(crate) async fn read(&mut self) -> Result<(StartOutcome<StartPlan>, Option<Error>)> {
        self.attempts += 1;
        let TurnMemoryState { store, registry, key, measure, .. } = self.memory;
        let (range, tip) = (self.range(), self.tip().await?);
        let see = |snapshot: Snapshot| {
            let open = open_turn(&snapshot).cloned();
            let unfinished = if tip.is_none() { registry.unfinished_in(key) } else { Vec::new() };
            if let Err(conflict) = self.check_others(&snapshot, &unfinished) {
                return ((open, Err(conflict)), true);
            }
            let covered = measure.is_covered(&snapshot);
            let summary = registry.unwritten_summary(key);
            let planned = self.plan(LoadedConversation { snapshot, parent: tip, unfinished, summary });
            let is_enough = covered.unwrap_or(match &planned {
                Ok((StartOutcome::Asking(plan), None)) => plan.is_full,
                Ok(_) => true,
                // A result may answer a call that was not read.
                Err(error) => error.kind() != ErrorKind::Configuration,
            });
            ((open, planned), is_enough)
        };
        let (open, planned) = registry.load(&**store, key, tip, range, see).await?;
        self.open = open;
        planned
    }

    fn range(&self) -> ReadRange {
        let TurnMemoryState { registry, key, measure, .. } = self.memory;
        if self.reads_all { ReadRange::All } else { registry.first_range(key, measure) }
    }

    /// Returns the entry that the turn follows, if it forks off there and has not done so before.
    async fn tip(&self) -> Result<Option<EntryId>> {
        let TurnMemoryState { store, registry, key, turn, fork_point, .. } = self.memory;
        let Some(fork_point) = fork_point else { return Ok(None) };
        let replaced = match fork_point {
            ForkPoint::Before(turn) => Some(turn),
            ForkPoint::After(_) => None,
        };
        let see = |snapshot: Snapshot| {
            let log = snapshot.into_entries();
            let has_begun = log.iter().any(|entry| entry.turn == *turn);
            let is_replaced = |entry: &&Entry| Some(&entry.turn) == replaced;
            // The range has whole turns.
            let before = log.iter().find(is_replaced).map(Entry::follows);
            let is_enough = has_begun || before.is_some() || replaced.is_none();
            ((has_begun, before), is_enough)
        };
        let range = if self.reads_all { ReadRange::All } else { ReadRange::LastTurns(1) };
        let (has_begun, before) = registry.load(&**store, key, None, range, see).await?;
        if has_begun {
            return Ok(None);
        }
        let tip = match (fork_point, before) {
            (ForkPoint::After(tip), _) => *tip,
            (ForkPoint::Before(_), Some(before)) => before,
            (ForkPoint::Before(turn), None) => self.search(turn).await?,
        };
        // Dropped turns are closed on their own branch, with the text they had shown, before the turn forks off. The
        // shown text belongs after the last entry of a turn, not where a branch cuts it.
        for unfinished in registry.unfinished_in(key).iter().filter(|known| known.turn != *turn) {
            registry.try_close(&**store, key, unfinished).await?;
            registry.forget(key, |known| known.number == unfinished.number);
        }
        Ok(Some(tip))
    }

    /// Searches the entry before a turn on all branches.
    async fn search(&self, turn: &TurnId) -> Result<EntryId> {
        let begins = |entry: &Entry| (entry.turn == *turn).then(|| entry.follows());
        let before = find_in_log(&*self.memory.store, &self.memory.key, EntryId::BEGINNING, begins).await?;
        before.ok_or_else(|| {
            Error::configuration(format!(
                "the conversation has no turn `{turn}` that another turn could replace"
            ))
        })
    }

    /// Checks that no other turn has begun since the first attempt, nor since the calls ran whose results begin this one.
    ///
    /// # Errors
    /// A conflict, if one has.
    fn check_others(&self, loaded: &Snapshot, unfinished: &[UnfinishedTurn]) -> Result<()> {
        let is_own = |turn: &TurnId| *turn == self.memory.turn;
        let is_dead = |turn: &TurnId| {
            is_own(turn)
                || Some(turn) == self.open.as_ref()
                || unfinished.iter().any(|known| known.turn == *turn)
        };
        let has_begun = self.attempts > 1 && open_turn(loaded).is_some_and(|turn| !is_dead(turn));
        let last = last_with_messages(&loaded.entries).and_then(<[Entry]>::first).map(|last| &last.turn);
        let went_on = self.memory.turn_that_asked().zip(last).is_some_and(|(asked, last)| {
            // The results belong to the calls of that turn. A store without leases allows another one meanwhile.
            last != asked && !is_own(last)
        });
        if has_begun || went_on {
            return Err(StoreError::Conflict { current: loaded.version }.into());
        }
        Ok(())
    }

    fn plan(&self, loaded: LoadedConversation) -> Result<(StartOutcome<StartPlan>, Option<Error>)> {
        let TurnMemoryState { turn, measure, .. } = self.memory;
        let has_run = self.memory.decided_results().next().is_some();
        let again = has_run.then(|| loaded.clone());
        match (StartPlan::plan(turn, self.said.to_vec(), loaded, measure), again) {
            // Any other error comes again.
            (Err(error), Some(loaded)) => {
                let measure = Measure { on_overflow: OnOverflow::Send, ..measure.clone() };
                Ok((StartPlan::plan(turn, self.said.to_vec(), loaded, &measure)?, Some(error)))
            }
            (planned, _) => Ok((planned?, None)),
        }
    }

    async fn append(&self, plan: &StartPlan) -> Result<Version, StoreError> {
        if plan.entries.is_empty() {
            return Ok(plan.version);
        }
        let TurnMemoryState { store, key, turn, lease, .. } = self.memory;
        let key_of_batch = match plan.earlier_run {
            Some(_) => BatchKey::new(turn.clone(), 0, format!("resumed-{}", plan.version)),
            None => BatchKey::for_input(turn.clone()),
        };
        let batch = Batch::new(key_of_batch, plan.entries.clone())
            .with_parent(plan.parent)
            .with_token(lease.token())
            .with_last_turn(plan.last_turn.clone());
        append_once(&**store, key, plan.version, batch).await
    }

    /// Decides whether another attempt follows this outcome of one. Returns the error if none does.
    fn retry_after(&mut self, outcome: Result<Version, StoreError>) -> Result<()> {
        match outcome {
            // An earlier turn of this process may have written late, or the conversation was deleted.
            Err(StoreError::Conflict { .. } | StoreError::Gone) if self.attempts < ATTEMPTS => Ok(()),
            // The key of the input is the turn's id: the turn began before the part that was read.
            Ok(_) | Err(StoreError::KeyReused) if !self.reads_all => {
                self.reads_all = true;
                Ok(())
            }
            Ok(_) | Err(StoreError::KeyReused) => Err(used(&self.memory.turn, "was begun otherwise")),
            Err(error) => Err(error.into()),
        }
    }

    fn has_unfinished_run(&self) -> bool {
        let TurnMemoryState { registry, key, turn, .. } = self.memory;
        registry.unfinished_in(key).iter().any(|known| known.turn == *turn)
    }

    fn state(&self, hold: Hold, version: Version, plan: StartPlan) -> TurnState {
        let TurnMemoryState { registry, key, turn, .. } = self.memory;
        let (last_turn, parent) = if plan.entries.is_empty() {
            registry.forget(key, |known| known.turn == *turn);
            (plan.last_turn, plan.parent)
        } else {
            // Every turn before this one is closed.
            registry.forget(key, |_| true);
            (Some(turn.clone()), None)
        };
        let state = TurnState::new(hold, version, plan.prompt, plan.earlier_run);
        TurnState { turns: plan.turns, last_turn, parent, ..state }
    }
}

fn open_turn(snapshot: &Snapshot) -> Option<&TurnId> {
    snapshot.open_turn.as_ref()?.first().map(|first| &first.turn)
}

/// The entries to write and the messages to send when a turn begins or resumes.
#[derive(Debug)]
pub(crate) struct StartPlan {
    /// The version at which the entries are written.
    pub(crate) version: Version,
    /// The entry that they follow, if that is not the last one.
    pub(crate) parent: Option<EntryId>,
    /// The turn of the last entry at that version, if known.
    pub(crate) last_turn: Option<TurnId>,
    /// The entries that close the previous turn, the input, and a new summary; empty if all is written already.
    pub(crate) entries: Vec<NewEntry>,
    /// The conversation and the input, including ephemeral messages, as they are sent.
    pub(crate) prompt: Prompt,
    /// Whether turns before the read ones would not be sent, with any content, and have no calls that the turn answers.
    pub(crate) is_full: bool,
    /// The number of earlier turns that no summary covers.
    pub(crate) turns: usize,
    /// The earlier run, if the turn stopped before and resumes.
    pub(crate) earlier_run: Option<EarlierRun>,
}

/// The conversation that a turn begins on.
#[derive(Clone)]
pub(crate) struct LoadedConversation {
    pub(crate) snapshot: Snapshot,
    /// The entry that the snapshot ends with, if the turn forks off there.
    pub(crate) parent: Option<EntryId>,
    /// The turns whose end is not written yet.
    pub(crate) unfinished: Vec<UnfinishedTurn>,
    /// A summary that is not written yet.
    pub(crate) summary: Option<UnwrittenSummary>,
}

impl StartPlan {
    /// Plans the start of `turn` with the input `said`. A pure function.
    ///
    /// # Errors
    /// If the turn's id was used for something else, a result in the input answers no open call, or the turn is
    /// too large.
    pub(crate) fn plan(
        turn: &TurnId,
        said: Vec<Message>,
        loaded: LoadedConversation,
        measure: &Measure,
    ) -> Result<StartOutcome<Self>> {
        let (version, parent) = (loaded.snapshot.version, loaded.parent);
        let last_turn = loaded.snapshot.last_turn().filter(|_| loaded.parent.is_none()).cloned();
        let mut log = whole_turns(loaded.snapshot);
        let input = results_first(said);
        let kept = |message: &&Message| is_remembered(message) && !message.is_empty_answer();
        let said: Vec<_> = input.iter().filter(kept).map(|message| new_entry(turn, message)).collect();
        let known = StoredTurn::from_log(turn, &said, &mut log, &loaded.unfinished)?;
        let summary = measure.summary(&log, loaded.summary.as_ref()).cloned();
        // The calls that the first results of a stored turn answer may not have been read.
        let mut lacks_calls = false;
        let (entries, pieces, earlier_run) = match known {
            StoredTurn::Answered(answer) => return Ok(StartOutcome::Answered(answer)),
            StoredTurn::Stopped(own) => {
                let rest = own.get(said.len()..).unwrap_or_default();
                let repair = Repair::from_log(after(&log, summary.as_ref()));
                lacks_calls = refuse_orphans(repair.open_calls().clone(), &input).is_err();
                let pieces = repair.finish_with(input, rest);
                let closing = close_own(&own, &loaded.unfinished);
                let earlier = EarlierRun::from_entries(&own, &closing);
                (closing, pieces, Some(earlier))
            }
            StoredTurn::New => {
                let mut entries = close_last(&mut log, &loaded.unfinished, &input);
                entries.extend(said);
                entries.extend(new_summary(turn, &log, summary.as_ref()));
                let repair = Repair::from_log(after(&log, summary.as_ref()));
                refuse_orphans(repair.open_calls().clone(), &input)?;
                (entries, repair.finish_with(input, &[]), None)
            }
        };
        let turns = after(&log, summary.as_ref()).chunk_by(same_turn).count();
        let (prompt, is_full) = Prompt::new(summary.as_ref().map(message_of), pieces, measure)?;
        let is_full = is_full && !lacks_calls;
        let plan = Self { version, parent, last_turn, entries, prompt, is_full, turns, earlier_run };
        Ok(StartOutcome::Asking(plan))
    }

    /// Returns the turn as unfinished, in case it stops while its beginning is written; `None` if it writes
    /// nothing.
    pub(crate) fn unsure(&self, turn: &TurnId) -> Option<UnfinishedTurn> {
        let own = self.entries.iter().filter(|new| new.turn == *turn).map(|new| new.kind.clone());
        let stopped =
            if self.earlier_run.is_none() { StoppedWhile::Beginning } else { StoppedWhile::Running };
        let until = Some(self.end());
        let unfinished = || UnfinishedTurn {
            stopped,
            until,
            ..UnfinishedTurn::new(turn.clone(), self.version, own.collect())
        };
        (!self.entries.is_empty()).then(unfinished)
    }

    /// Returns the version after the entries are written.
    pub(crate) fn end(&self) -> Version {
        self.version.after(self.entries.len())
    }

    /// Returns the last entry that a summary among the entries covers; 0 without one.
    fn summarized_until(&self) -> u64 {
        let summaries = self.entries.iter().filter_map(|entry| match &entry.kind {
            EntryKind::Summary(summary) => Some(summary.until),
            _ => None,
        });
        summaries.max().unwrap_or_default()
    }
}

/// Returns the entries that close a turn before it resumes: results for its open calls. If its end is still to be
/// written, they include it. A concurrent close then finds it written and does nothing.
fn close_own(own: &[Entry], unfinished: &[UnfinishedTurn]) -> Vec<NewEntry> {
    let turn = own.first().map(|entry| &entry.turn);
    if unfinished.iter().any(|known| Some(&known.turn) == turn) {
        return closing(own, &end_of(own, unfinished), &[]);
    }
    let missing = open_calls(own).missing();
    let (round, results) = (round_of_calls(own), missing.iter().zip(turn.into_iter().cycle()));
    results.map(|(result, turn)| new_entry(turn, result).with_round(round)).collect()
}

/// Returns the entry of a summary that the log does not have yet.
fn new_summary(turn: &TurnId, log: &[Entry], summary: Option<&Summary>) -> Option<NewEntry> {
    let stored = last_summary(log).map_or(0, |summary| summary.until);
    let new = summary.filter(|summary| summary.until > stored)?;
    Some(NewEntry::new(turn.clone(), EntryKind::Summary(new.clone())))
}

/// Returns the entries that close the last turn of a log, and appends them to the log.
fn close_last(log: &mut Vec<Entry>, unfinished: &[UnfinishedTurn], input: &[Message]) -> Vec<NewEntry> {
    let last = log.chunk_by(same_turn).next_back().unwrap_or_default();
    let mut end = end_of(last, unfinished);
    if is_sent_again(last, &end, input) {
        end = TurnEnd::RolledBack;
    }
    let closed = closing(last, &end, input);
    extend_with_planned(log, closed.iter().cloned());
    closed
}

/// Checks whether the last turn only brought results and was not answered, and the input brings all of its
/// messages again.
fn is_sent_again(last: &[Entry], end: &TurnEnd, input: &[Message]) -> bool {
    let unanswered = matches!(end, TurnEnd::Failed { .. } | TurnEnd::Refused | TurnEnd::Interrupted { .. });
    let messages = || last.iter().filter_map(|entry| entry.kind.as_message());
    let again = |message: &Message| match message.tool_result() {
        Some(result) => {
            input.iter().filter_map(Message::tool_result).any(|new| new.call_id == result.call_id)
        }
        None => input.contains(message),
    };
    unanswered && messages().any(|message| message.role() == Role::Tool) && messages().all(again)
}

fn refuse_orphans(mut calls: OpenCalls, input: &[Message]) -> Result<()> {
    let leading = input.iter().take_while(|message| !is_answer(message));
    for message in leading {
        if let Some(result) = message.tool_result()
            && !calls.accept(message)
        {
            return Err(Error::configuration(format!(
                "the input has a result for the call `{}`, but no such call of the conversation is waiting for one",
                result.call_id
            )));
        }
    }
    Ok(())
}

fn new_entry(turn: &TurnId, message: &Message) -> NewEntry {
    NewEntry::new(turn.clone(), EntryKind::Message(message.clone()))
}

#[cfg(test)]
mod tests;
