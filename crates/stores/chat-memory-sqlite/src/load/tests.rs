//! Tests of `load`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use advisor_core::{FinishReason, Message, TurnEnd, TurnId};
use conversation_store::{Batch, BatchKey, EntryKind, NewEntry};

use super::*;
use crate::append::append;
use crate::file;

fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

fn said(text: &str) -> EntryKind {
    EntryKind::Message(Message::user(text))
}

fn end() -> EntryKind {
    EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop))
}

fn log(turns: impl IntoIterator<Item = (String, Vec<EntryKind>)>) -> Vec<NewEntry> {
    let turns = turns.into_iter().map(|(turn, kinds)| (TurnId::new(&turn).unwrap(), kinds));
    turns
        .flat_map(|(turn, kinds)| kinds.into_iter().map(move |kind| NewEntry::new(turn.clone(), kind)))
        .collect()
}

/// Creates a conversation of these entries, in batches of `size`.
fn written(entries: &[NewEntry], size: usize) -> Connection {
    let mut connection = file::in_memory().unwrap();
    let mut version = Version::EMPTY;
    for (round, entries) in (0..).zip(entries.chunks(size)) {
        let batch = Batch::new(BatchKey::new(TurnId::new("w").unwrap(), round, "x"), entries.to_vec());
        version = append(&mut connection, &key(), version, &batch).unwrap();
    }
    connection
}

/// Counts the SQLite virtual machine steps of a read, and what it returns; each row costs some. The statements are prepared
/// before.
fn steps_of(connection: &mut Connection, read: impl Fn(&mut Connection) -> usize) -> (u64, usize) {
    read(connection);
    let steps = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&steps);
    let count = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        false
    };
    connection.progress_handler(1, Some(count)).unwrap();
    let entries = read(connection);
    let steps = steps.load(Ordering::Relaxed);
    assert!(steps > 20, "the steps are counted");
    (steps, entries)
}

fn steps(connection: &mut Connection, range: ReadRange) -> (u64, usize) {
    steps_of(connection, |connection| load(connection, &key(), None, range).unwrap().entries.len())
}

fn turns_of_three(count: usize) -> Vec<NewEntry> {
    log((0..count / 3).map(|turn| (format!("t{turn}"), vec![said("u"), said("a"), end()])))
}

/// One turn of many rounds, longer than the range that is read.
fn one_turn(count: usize) -> Vec<NewEntry> {
    log([(String::from("t"), [vec![said("u"); count - 1], vec![end()]].concat())])
}

#[test]
fn reading_conversation_end_cost_is_independent_of_length() {
    let ranges = [ReadRange::LastEntries(20), ReadRange::LastEntries(0), ReadRange::LastTurns(7)];
    let shapes: [fn(usize) -> Vec<NewEntry>; 2] = [turns_of_three, one_turn];
    for (shape, ranges) in shapes.into_iter().zip([&ranges[..], &ranges[..2]]) {
        let (mut short, mut long) = (written(&shape(102), 100), written(&shape(99_999), 1000));
        for range in ranges {
            let ((short, few), (long, many)) = (steps(&mut short, *range), steps(&mut long, *range));
            assert_eq!(few, many);
            assert!(long <= short, "{range:?}: {long} steps for the end of many entries, {short} for few");
        }
    }
}

/// A conversation of `count` entries in turns of three, then branched `times` times near the end. Each branch
/// follows the second-to-last turn of the previous branch.
fn branched(count: usize, times: u64) -> Connection {
    let mut connection = written(&turns_of_three(count), 1000);
    for round in 0..times {
        let at = load(&mut connection, &key(), None, ReadRange::LastTurns(2)).unwrap();
        let parent = EntryId(at.entries[2].seq);
        let turn = TurnId::new(&format!("b{round}")).unwrap();
        let batch = Batch::new(
            BatchKey::new(turn, 0, "x"),
            log([(format!("b{round}"), vec![said("u"), said("a"), end()])]),
        );
        append(&mut connection, &key(), at.version, &batch.with_parent(parent)).unwrap();
    }
    connection
}

#[test]
fn reading_branch_end_cost_is_independent_of_log() {
    for range in [ReadRange::LastEntries(20), ReadRange::LastEntries(0), ReadRange::LastTurns(7)] {
        for times in [1, 40] {
            let (mut short, mut long) = (branched(300, times), branched(99_999, times));
            let ((short, few), (long, many)) = (steps(&mut short, range), steps(&mut long, range));
            assert_eq!(few, many);
            assert!(long <= short, "{range:?} behind {times} forks: {long} steps of many, {short} of few");
        }
        // Reading a log without forks costs about as many steps, apart from looking for forks.
        let (plain, _) = steps(&mut written(&turns_of_three(300), 100), range);
        let (branched, _) = steps(&mut branched(300, 40), range);
        assert!(branched <= 3 * plain + 100, "{range:?}: {branched} steps with forks, {plain} without");
    }
}

#[test]
fn page_cost_is_independent_of_log_length() {
    let page = |count: usize, after: u64| {
        let read = |connection: &mut Connection| read(connection, &key(), EntryId(after), 50).unwrap().len();
        let (steps, entries) = steps_of(&mut branched(count, 1), read);
        assert_eq!(entries, 50);
        steps
    };
    let short = page(300, 100);
    for after in [0, 50_000, 99_900] {
        let long = page(99_999, after);
        assert!(long <= short, "after {after}: {long} steps of many, {short} of few");
    }
}
