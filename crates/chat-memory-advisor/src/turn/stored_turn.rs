//! `StoredTurn` and `EarlierRun`: recognition of a turn submitted again under its id.

use std::collections::HashSet;

use advisor_core::{
    CallKey, ChatResponse, EarlierRound, Error, ErrorKind, FinishReason, Message, Result, Turn, TurnEnd,
    TurnId,
};
use conversation_store::{Entry, EntryKind, NewEntry, Version, same_turn};

use crate::conversation::unfinished::{UnfinishedTurn, end_of};
use crate::transcript::repair::{answer_in, has_calls, is_answer};

/// The stored part of a turn that begins: nothing, unless the turn was submitted before under its id.
#[derive(Debug)]
pub(crate) enum StoredTurn {
    /// The turn is new.
    New,
    /// The turn was answered.
    Answered(ChatResponse),
    /// The turn stopped. All its entries.
    Stopped(Vec<Entry>),
}

/// The facts in the log about an earlier run of a turn that resumes.
#[derive(Debug, Default)]
pub(crate) struct EarlierRun {
    /// The calls whose start is stored.
    pub(crate) started: HashSet<CallKey>,
    /// The highest round that is stored.
    pub(crate) highest: u32,
    /// Whether every entry can be read, and every answer has its round.
    pub(crate) is_numbered: bool,
    /// The stored rounds, for a reader.
    pub(crate) rounds: Vec<EarlierRound>,
}

impl EarlierRun {
    /// Collects the facts from all entries of the turn. `closing` has those that close it before it goes on.
    pub(crate) fn from_entries(own: &[Entry], closing: &[NewEntry]) -> Self {
        let mut run = Self { is_numbered: true, ..Self::default() };
        for entry in own {
            match &entry.kind {
                EntryKind::CallStarted(start) => {
                    run.highest = run.highest.max(start.key.round);
                    run.started.insert(start.key.clone());
                }
                EntryKind::Message(message) if is_answer(message) => {
                    run.is_numbered &= entry.round.is_some();
                }
                EntryKind::Corrupt(_) | EntryKind::Unknown(_) => run.is_numbered = false,
                _ => {}
            }
            run.highest = run.highest.max(entry.round.unwrap_or_default());
        }
        let stored = own.iter().map(|entry| (&entry.kind, entry.round));
        for (kind, round) in stored.chain(closing.iter().map(|entry| (&entry.kind, None))) {
            run.note_message(kind, round);
        }
        run
    }

    /// Adds an answer, or a result to the last one.
    fn note_message(&mut self, kind: &EntryKind, round: Option<u32>) {
        let Some(message) = kind.as_message().filter(|message| !message.is_hidden()) else { return };
        if let Some(result) = message.tool_result() {
            self.rounds.last_mut().into_iter().for_each(|last| last.results.push(result.clone()));
        } else if is_answer(message) && !message.is_empty_answer() {
            let last = self.rounds.last().map_or(0, |last| last.response.round());
            let reason = if has_calls(message) { FinishReason::ToolCalls } else { FinishReason::Stop };
            let round = round.unwrap_or_else(|| last.saturating_add(1));
            let response = ChatResponse::new(round, message.clone(), reason);
            self.rounds.push(EarlierRound { response, results: Vec::new() });
        }
    }

    /// Returns a number that no round of the earlier runs exceeds, at this version of the conversation.
    ///
    /// A damaged entry may hide a round. Each stored round has at least one entry. So a hundred numbers for each entry
    /// also suffice for rounds that were asked again.
    pub(crate) fn rounds_at(&self, version: Version) -> u32 {
        let entries = u32::try_from(version.0).unwrap_or(u32::MAX);
        let guess = if self.is_numbered { 0 } else { entries.saturating_mul(100).min(u32::MAX / 2) };
        self.highest.max(guess)
    }
}

impl StoredTurn {
    /// Looks `turn` and its input up in the log. Removes the entries of a turn that stopped from the log.
    ///
    /// # Errors
    /// If the turn was begun with another input, was rolled back, stopped before other turns, or is damaged.
    pub(crate) fn from_log(
        turn: &TurnId,
        input: &[NewEntry],
        log: &mut Vec<Entry>,
        unfinished: &[UnfinishedTurn],
    ) -> Result<Self> {
        let Some(from) = log.iter().position(|entry| entry.turn == *turn) else { return Ok(Self::New) };
        let rest = log.get(from..).unwrap_or_default();
        let own = rest.chunk_by(same_turn).next().unwrap_or_default();
        let said = own.iter().zip(input).take_while(|(old, new)| old.kind == new.kind).count();
        if said < input.len() {
            let is_damaged = own.get(said).is_some_and(|old| matches!(old.kind, EntryKind::Corrupt(_)));
            let other = || used(turn, "was begun with another input");
            return Err(if is_damaged { damaged(turn) } else { other() });
        }
        if end_of(own, unfinished) == TurnEnd::RolledBack {
            return Err(used(turn, "was rolled back"));
        }
        if let Some(answer) = stored_answer(turn, own)? {
            return Ok(Self::Answered(answer));
        }
        if own.len() < rest.len() {
            return Err(used(turn, "stopped, and the conversation has gone on without it"));
        }
        Ok(Self::Stopped(log.split_off(from)))
    }
}

/// Returns the answer of a turn that is submitted again, under its original round.
pub(crate) fn given_again(answer: ChatResponse, turn: &Turn) -> ChatResponse {
    turn.number_rounds_above(answer.round().saturating_sub(1));
    turn.facts(|facts| facts.answered_before = true);
    answer
}

/// Returns the answer of a turn with all messages of the turn, if it completed. A later failure does not replace it. A
/// hidden answer is empty.
///
/// # Errors
/// If the deciding entry is damaged.
fn stored_answer(turn: &TurnId, own: &[Entry]) -> Result<Option<ChatResponse>> {
    let is_pending = |entry: &&Entry| matches!(entry.kind, EntryKind::CallPending(_));
    let mut backwards = own.iter().rev().filter(|entry| !is_pending(entry));
    let decides = |entry: &&Entry| {
        use EntryKind::{Corrupt, Message, TurnEnded};
        matches!(entry.kind, TurnEnded(TurnEnd::Completed(_)) | Message(_) | Corrupt(_))
    };
    let reason = match backwards.find(decides).map(|entry| &entry.kind) {
        Some(EntryKind::TurnEnded(TurnEnd::Completed(reason))) => reason.clone(),
        Some(EntryKind::Corrupt(_)) => return Err(damaged(turn)),
        _ => return Ok(None),
    };
    let mut last = backwards.next();
    if reason == FinishReason::ToolCalls && last.is_some_and(is_result) {
        // The results of the loop's calls follow an answer with calls of both sides.
        last = backwards.find(|entry| !is_result(entry));
    }
    if last.is_some_and(|last| matches!(last.kind, EntryKind::Corrupt(_))) {
        return Err(damaged(turn));
    }
    // Without rounds in the log, the number of answers is the last round.
    let answers = || u32::try_from(own.iter().filter_map(answer_in).count()).unwrap_or(u32::MAX);
    let round = last.and_then(|last| last.round).unwrap_or_else(answers);
    let message = match last.and_then(answer_in) {
        Some(message) if message.is_hidden() => Message::assistant_blocks(Vec::new()),
        Some(message) => message.clone(),
        None => Message::assistant(""),
    };
    let mut response = ChatResponse::new(round, message, reason);
    response.transcript = own.iter().filter_map(|entry| entry.kind.as_message()).cloned().collect();
    Ok(Some(response))
}

fn is_result(entry: &Entry) -> bool {
    entry.kind.as_message().is_some_and(|message| message.tool_result().is_some())
}

pub(crate) fn used(turn: &TurnId, why: &str) -> Error {
    Error::new(ErrorKind::TurnIdReused, format!("turn `{turn}` {why}; give a new turn a new id"))
}

fn damaged(turn: &TurnId) -> Error {
    let text = format!(
        "the stored entries of turn `{turn}` are damaged, so its end is unknown; give a new turn a new id"
    );
    Error::new(ErrorKind::Store, text)
}
