//! Checks of memory: log, shown text, rollback, and the last turn.

use std::collections::{BTreeMap, HashMap, HashSet};

use advisor_core::{BlockDelta, ChatResponse, Chunk, ErrorKind, Message, OnDrop, Role, TurnEnd, TurnId};
use conversation_store::{Entry, EntryKind, NewEntry, Version};

use super::broken_if;
use crate::crash::{CaseRun, Event, Fault, Outcome, TurnRun};
use crate::sent::written;

pub(super) fn log_is_what_was_appended(run: &CaseRun) -> Result<(), String> {
    for (place, turn) in run.turns.iter().enumerate() {
        let mut log = turn.log.iter();
        let is_next =
            |new: &NewEntry| log.next().is_some_and(|old| (&old.turn, &old.kind) == (&new.turn, &new.kind));
        let all_there = run.appended_until(place).all(is_next);
        if !all_there
            || log.next().is_some()
            || !turn.log.iter().map(|entry| entry.seq).eq((1..).take(turn.log.len()))
        {
            let log: Vec<_> = turn.log.iter().map(|entry| entry.kind.label()).collect();
            return Err(format!(
                "after turn {} the log is {log:?}, which differs from the appended entries",
                turn.id
            ));
        }
    }
    let mut versions = HashMap::new();
    let mut reached = Version::EMPTY;
    for event in run.events() {
        match event {
            Event::Appended { key, entries, version } => {
                reached = reached.after(entries.len());
                broken_if(*version != reached, || {
                    format!("batch {key} led to version {version} instead of {reached}")
                })?;
                versions.insert(key, reached);
            }
            Event::AppendedAgain { key, version } => broken_if(versions.get(key) != Some(version), || {
                format!("batch {key}, appended again, led to version {version}")
            })?,
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn turns_are_contiguous(run: &CaseRun) -> Result<(), String> {
    let mut seen = HashSet::new();
    for entries in run.log.chunk_by(|one, next| one.turn == next.turn) {
        let is_of =
            |entry: &Entry, role| entry.kind.as_message().is_some_and(|message| message.role() == role);
        let Some(first) = entries.first() else { continue };
        broken_if(!seen.insert(&first.turn), || {
            format!("the entries of turn {} are not adjacent", first.turn)
        })?;
        // After an approval, the input is the results.
        let results = usize::from(is_of(first, Role::Tool));
        let inputs = entries.iter().filter(|entry| is_of(entry, Role::User)).count() + results;
        broken_if(inputs != 1, || format!("turn {} has {inputs} inputs", first.turn))?;
    }
    Ok(())
}

pub(super) fn shown_is_remembered(run: &CaseRun) -> Result<(), String> {
    for (place, turn) in run.turns.iter().enumerate().filter(|(_, turn)| !is_undone(turn, &run.log)) {
        let remembered = Remembered::from_log(turn, &run.log);
        remembered.holds(turn, run.is_killed_from(place))?;
    }
    Ok(())
}

/// The texts of a turn in a log.
struct Remembered {
    answers: Vec<String>,
    partial: String,
    completed: bool,
}

impl Remembered {
    fn from_log(turn: &TurnRun, log: &[Entry]) -> Self {
        let is_answer = |message: &&Message| message.role() == Role::Assistant;
        let messages = turn.entries(log).filter_map(|entry| entry.kind.as_message());
        let answers = messages.filter(is_answer).map(Message::text).collect();
        let end = turn.entries(log).rev().find_map(|entry| match &entry.kind {
            EntryKind::TurnEnded(end) => Some(end),
            _ => None,
        });
        let partial = match end {
            Some(TurnEnd::Interrupted { partial } | TurnEnd::Failed { partial }) => partial.to_string(),
            _ => String::new(),
        };
        Self { answers, partial, completed: matches!(end, Some(TurnEnd::Completed(_))) }
    }

    /// `killed` says whether the text of a round whose end was not shown may be missing.
    fn holds(&self, turn: &TurnRun, killed: bool) -> Result<(), String> {
        let shown = shown(turn);
        self.check_rounds(turn, &shown, killed)?;
        check_report(turn, &shown)?;
        let last = shown.values().next_back();
        broken_if(!self.partial.is_empty() && last != Some(&self.partial), || {
            format!("{:?} is remembered as shown, and {last:?} was", self.partial)
        })?;
        broken_if(turn.outcome == Outcome::Completed && !self.completed, || {
            "a turn that has completed is not stored as completed".into()
        })?;
        Ok(())
    }

    /// Checks that the shown text of each round is remembered once.
    fn check_rounds(
        &self,
        turn: &TurnRun,
        shown: &BTreeMap<u32, String>,
        killed: bool,
    ) -> Result<(), String> {
        let last_round = shown.keys().next_back().copied();
        let mut rest = self.answers.iter();
        for (round, text) in shown {
            let is_last = Some(*round) == last_round;
            let is_open = is_last && !has_seen_end(turn, *round);
            let is_it = |answer: &&String| *answer == text || (is_open && answer.starts_with(text.as_str()));
            let in_answer = rest.find(is_it).is_some();
            let in_partial = is_last && self.partial == *text;
            // Another round of the turn may have the same text.
            let times = match (in_answer, in_partial) {
                (true, true) if !is_stored(turn, *round, text) => 1,
                (in_answer, in_partial) => usize::from(in_answer) + usize::from(in_partial),
            };
            let may_be_lost = killed && is_open;
            broken_if(times > 1 || (times == 0 && !may_be_lost), || {
                format!(
                    "{text:?} was shown in round {round} and is remembered {times} times: answers {:?}, partial {:?}",
                    self.answers, self.partial
                )
            })?;
        }
        Ok(())
    }
}

/// Checks that the reported partial answer is the text that was shown.
fn check_report(turn: &TurnRun, shown: &BTreeMap<u32, String>) -> Result<(), String> {
    let Some(reported) = reported(turn) else { return Ok(()) };
    let shown = shown.get(&reported.round());
    if reported.text() != shown.map_or("", String::as_str) {
        let (text, round) = (reported.text(), reported.round());
        return Err(format!("{text:?} is reported for round {round}, and {shown:?} was shown"));
    }
    Ok(())
}

/// Returns the text of each round that the reader was shown, without void text.
fn shown(turn: &TurnRun) -> BTreeMap<u32, String> {
    let mut rounds: BTreeMap<u32, String> = BTreeMap::new();
    for event in &turn.events {
        match event {
            Event::Delivered(Chunk::Delta {
                block,
                delta: BlockDelta::Text(text) | BlockDelta::Refusal(text),
            }) => {
                rounds.entry(block.round).or_default().push_str(text);
            }
            Event::Delivered(Chunk::AttemptRestarted { round }) => {
                rounds.remove(round);
            }
            _ => {}
        }
    }
    rounds
}

/// Returns the response that the reader received at the end of the turn.
fn reported(turn: &TurnRun) -> Option<&ChatResponse> {
    turn.events.iter().find_map(|event| match event {
        Event::Delivered(Chunk::Completed(response)) => Some(response),
        _ => None,
    })
}

/// Checks whether an answer of this round that begins with `text` was appended.
fn is_stored(turn: &TurnRun, round: u32, text: &str) -> bool {
    turn.events.iter().any(|event| match event {
        Event::Appended { key, entries, .. } if key.turn == turn.id && key.round == round => {
            let mut messages = entries.iter().filter_map(|entry| entry.kind.as_message());
            messages.any(|message| message.role() == Role::Assistant && message.text().starts_with(text))
        }
        _ => false,
    })
}

/// Checks whether the reader has seen the end of the round.
fn has_seen_end(turn: &TurnRun, round: u32) -> bool {
    turn.events.iter().any(|event| match event {
        Event::Delivered(Chunk::RoundCompleted(response)) => response.round() == round,
        Event::Delivered(Chunk::Completed(_)) => true,
        _ => false,
    })
}

/// Checks whether a turn must be hidden, as if it had never happened.
fn is_undone(turn: &TurnRun, log: &[Entry]) -> bool {
    let cancelled = turn.first_cancelled() == Some(Fault::Cancel(OnDrop::Rollback));
    match turn.outcome {
        Outcome::Dropped if turn.injected().any(|fault| fault == Fault::Drop(OnDrop::Rollback)) => true,
        Outcome::Failed(ErrorKind::Cancelled) => cancelled,
        // A turn that failed before it was cancelled stays failed, but only the log shows that.
        Outcome::Dropped | Outcome::Killed | Outcome::Panicked => cancelled && is_hidden(turn, log),
        _ => false,
    }
}

fn user_text(entry: &Entry) -> Option<String> {
    let message = entry.kind.as_message().filter(|message| message.role() == Role::User);
    message.map(Message::text)
}

fn is_hidden(turn: &TurnRun, log: &[Entry]) -> bool {
    let last = turn.entries(log).last();
    last.is_none_or(|entry| matches!(entry.kind, EntryKind::TurnEnded(TurnEnd::RolledBack)))
}

pub(super) fn undone_is_hidden(run: &CaseRun) -> Result<(), String> {
    for (place, turn) in run.turns.iter().enumerate().filter(|(_, turn)| is_undone(turn, &run.log)) {
        if run.is_killed_from(place) {
            continue;
        }
        broken_if(!is_hidden(turn, &run.log), || {
            format!("turn {} was rolled back and is not hidden", turn.id)
        })?;
        let texts: HashSet<_> = turn.entries(&run.log).filter_map(user_text).collect();
        let asked = run.turns.iter().skip(place + 1).flat_map(|later| &later.events);
        let mut sent = asked.filter_map(|event| match event {
            Event::Asked { messages, .. } => Some(messages),
            _ => None,
        });
        broken_if(
            sent.any(|messages| messages.iter().any(|message| texts.contains(&message.text()))),
            || format!("turn {} was rolled back, and the model reads it", turn.id),
        )?;
    }
    Ok(())
}

pub(super) fn the_last_turn_works(run: &CaseRun) -> Result<(), String> {
    let Some(last) = run.turns.last() else { return Ok(()) };
    broken_if(last.outcome != Outcome::Completed, || {
        format!("the last turn does not complete; it ends with {:?}", last.outcome)
    })?;
    let remembered = Remembered::from_log(last, &run.log);
    broken_if(!remembered.completed, || {
        format!("the last turn is not remembered as one that has completed: {:?}", remembered.answers)
    })
}

pub(super) fn the_last_turn_is_unchanged(run: &CaseRun) -> Result<(), String> {
    let Some(last) = run.turns.last() else { return Ok(()) };
    let messages = |log: &[Entry], turn: &TurnId| -> Vec<Message> {
        let entries = log.iter().filter(|entry| entry.turn == *turn);
        entries.filter_map(|entry| entry.kind.as_message()).cloned().collect()
    };
    let alone = run.alone.last().map(|entry| messages(&run.alone, &entry.turn)).unwrap_or_default();
    let remembered = messages(&run.log, &last.id);
    broken_if(remembered != alone, || {
        format!(
            "the last turn is stored as {}, and in a separate conversation as {}",
            written(&remembered),
            written(&alone)
        )
    })
}
