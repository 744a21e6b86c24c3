//! `StartPlan::plan`: pure plan for a start: entries to write and messages to send.

use std::sync::Arc;

use advisor_core::{Error, Message, Result, Role, TurnEnd, TurnId};

use crate::MemoryTexts;
use crate::conversation::unfinished_turn::{Stage, UnfinishedTurn};
use crate::transcript::open_calls::OpenCalls;
use crate::transcript::planned::extend_with_planned;
use crate::transcript::repair::{Pieces, Repair, is_answer, is_remembered, open_calls, results_first};
use crate::transcript::summary::{Pending, after, last_summary, message_of};
use crate::transcript::whole_turns::whole_turns;
use crate::transcript::window::{Fitted, Measure};
use crate::turn::closing_entries::{closing, end_of, round_of_calls};
use crate::turn::prompt::Prompt;
use crate::turn::resubmitted::{EarlierRun, StoredAnswer, StoredTurn};
use conversation_store::{Entry, EntryId, EntryKind, NewEntry, Snapshot, Summary, Version, same_turn};

/// The start of a turn.
#[derive(Debug)]
pub(crate) enum StartOutcome<T> {
    /// The model is asked.
    Asking(T),
    /// The turn was answered before.
    Answered(StoredAnswer),
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
    /// The messages to send of the conversation and the input, including ephemeral messages.
    pub(crate) fitted: Fitted,
    /// All messages of the earlier turns, if the selection may change while the turn runs.
    pub(crate) past: Vec<Vec<Message>>,
    /// The number of entries that were read of a longer conversation, if the selection may change while the turn
    /// runs.
    pub(crate) read: Option<usize>,
    /// The message before those to send, in place of the oldest turns.
    pub(crate) summary: Option<Message>,
    /// The number of earlier turns that the summary does not cover.
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
    pub(crate) summary: Option<Pending>,
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
        let (version, parent, texts) = (loaded.snapshot.version, loaded.parent, &*measure.texts);
        let last_turn = loaded.snapshot.last_turn().filter(|_| loaded.parent.is_none()).cloned();
        let read = Self::read_for_later(&loaded.snapshot, measure);
        let mut log = whole_turns(loaded.snapshot);
        let input = results_first(said);
        let kept = |message: &&Message| is_remembered(message) && !message.is_empty_answer();
        let said: Vec<_> = input.iter().filter(kept).map(|message| new_entry(turn, message)).collect();
        let known = StoredTurn::from_log(turn, &said, &mut log, &loaded.unfinished)?;
        let summary = measure.summary(&log, loaded.summary.as_ref()).cloned();
        let (entries, pieces, earlier_run) = match known {
            StoredTurn::Answered(answer) => return Ok(StartOutcome::Answered(answer)),
            StoredTurn::Stopped(own) => {
                let rest = own.get(said.len()..).unwrap_or_default();
                let pieces = Repair::from_log(after(&log, summary.as_ref()), texts).finish_with(input, rest);
                let closing = close_own(&own, &loaded.unfinished, texts);
                let earlier = EarlierRun::from_entries(&own, &closing);
                (closing, pieces, Some(earlier))
            }
            StoredTurn::New => {
                let mut entries = close_last(&mut log, &loaded.unfinished, &input, texts);
                entries.extend(said);
                entries.extend(unwritten_summary(turn, &log, summary.as_ref()));
                let repair = Repair::from_log(after(&log, summary.as_ref()), texts);
                refuse_orphans(repair.open_calls().clone(), &input)?;
                (entries, repair.finish_with(input, &[]), None)
            }
        };
        let turns = after(&log, summary.as_ref()).chunk_by(same_turn).count();
        let summary = summary.as_ref().map(|summary| message_of(summary, texts));
        let Pieces { earlier: mut past, running } = pieces;
        let fitted = measure.fit(&past, running)?;
        past.retain(|_| measure.bounds_running());
        let plan =
            Self { version, parent, last_turn, entries, fitted, past, read, summary, turns, earlier_run };
        Ok(StartOutcome::Asking(plan))
    }

    /// Returns the prompt with which the turn begins.
    pub(crate) fn prompt(&self, system: &[Message], measure: &Measure) -> Prompt {
        let texts = Arc::clone(&measure.texts);
        Prompt::new(system.to_vec(), self.summary.clone(), &self.fitted, texts)
    }

    /// Returns how many entries were read, if more may be needed later. If summaries are sent, everything that
    /// none covers was read.
    fn read_for_later(snapshot: &Snapshot, measure: &Measure) -> Option<usize> {
        let changes = measure.bounds_running() && measure.summarizer.is_none();
        (changes && !snapshot.is_whole()).then_some(snapshot.entries.len())
    }

    /// Returns the turn as unfinished, in case it stops while its beginning is written; `None` if it writes
    /// nothing.
    pub(crate) fn unsure(&self, turn: &TurnId) -> Option<UnfinishedTurn> {
        let own = self.entries.iter().filter(|new| new.turn == *turn).map(|new| new.kind.clone());
        let stage = if self.earlier_run.is_none() { Stage::Beginning } else { Stage::Running };
        let until = Some(self.end());
        let unfinished = || UnfinishedTurn {
            stage,
            until,
            ..UnfinishedTurn::new(turn.clone(), self.version, own.collect())
        };
        (!self.entries.is_empty()).then(unfinished)
    }

    /// Returns the version after the entries are written.
    pub(crate) fn end(&self) -> Version {
        self.version.after(self.entries.len())
    }
}

/// Returns the entries that close a turn before it resumes: results for its open calls. If its end is still to be
/// written, they include it. A concurrent close then finds it written and does nothing.
fn close_own(own: &[Entry], unfinished: &[UnfinishedTurn], texts: &MemoryTexts) -> Vec<NewEntry> {
    let turn = own.first().map(|entry| &entry.turn);
    if unfinished.iter().any(|known| Some(&known.turn) == turn) {
        return closing(own, &end_of(own, unfinished), &[], texts);
    }
    let missing = open_calls(own).missing(texts);
    let (round, results) = (round_of_calls(own), missing.iter().zip(turn.into_iter().cycle()));
    results.map(|(result, turn)| new_entry(turn, result).with_round(round)).collect()
}

/// Returns the entry of a summary that the log does not have yet.
fn unwritten_summary(turn: &TurnId, log: &[Entry], summary: Option<&Summary>) -> Option<NewEntry> {
    let stored = last_summary(log).map_or(0, |summary| summary.until);
    let new = summary.filter(|summary| summary.until > stored)?;
    Some(NewEntry::new(turn.clone(), EntryKind::Summary(new.clone())))
}

/// Returns the entries that close the last turn of a log, and appends them to the log.
fn close_last(
    log: &mut Vec<Entry>,
    unfinished: &[UnfinishedTurn],
    input: &[Message],
    texts: &MemoryTexts,
) -> Vec<NewEntry> {
    let last = log.chunk_by(same_turn).next_back().unwrap_or_default();
    let mut end = end_of(last, unfinished);
    if is_sent_again(last, &end, input) {
        end = TurnEnd::RolledBack;
    }
    let closed = closing(last, &end, input, texts);
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
