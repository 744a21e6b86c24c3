//! `closing`: the missing results and the end of a stopped turn, as entries to write.

use advisor_core::{Message, Text, TurnEnd};
use conversation_store::{Entry, EntryKind, NewEntry, last_end, same_turn};

use crate::MemoryTexts;
use crate::conversation::unfinished_turn::UnfinishedTurn;
use crate::transcript::planned::extend_with_planned;
use crate::transcript::repair::{answer_in, open_calls};

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
pub(crate) fn closing(
    entries: &[Entry],
    end: &TurnEnd,
    input: &[Message],
    texts: &MemoryTexts,
) -> Vec<NewEntry> {
    let Some(turn) = entries.first().map(|entry| &entry.turn) else { return Vec::new() };
    let (mut kinds, round) = (Vec::new(), round_of_calls(entries));
    if *end != TurnEnd::RolledBack {
        let mut calls = open_calls(entries);
        for message in input {
            calls.accept(message);
        }
        kinds.extend(calls.missing(texts).into_iter().map(EntryKind::Message));
    }
    if !kinds.is_empty() || last_end(entries) != Some(end) {
        kinds.push(EntryKind::TurnEnded(end.clone()));
    }
    kinds.into_iter().map(|kind| NewEntry::new(turn.clone(), kind).with_round(round)).collect()
}

/// Ends the last turn of a log, as far as the log and this process know its end.
pub(crate) fn end_last_turn(log: &mut Vec<Entry>, unfinished: &[UnfinishedTurn], texts: &MemoryTexts) {
    let last = log.chunk_by(same_turn).next_back().unwrap_or_default();
    let closing = closing(last, &end_of(last, unfinished), &[], texts);
    extend_with_planned(log, closing);
}

/// Returns the round of the last answer among these entries, if known.
pub(crate) fn round_of_calls(entries: &[Entry]) -> Option<u32> {
    entries.iter().rev().find(|entry| answer_in(entry).is_some())?.round()
}
