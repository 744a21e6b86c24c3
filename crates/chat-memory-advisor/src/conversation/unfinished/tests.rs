//! Tests of `conversation::unfinished`.

use std::sync::{Arc, Mutex};

use advisor_core::async_trait;
use advisor_testkit::{Around, Asked, StoreAround, Work};
use proptest::prelude::*;

use super::*;
use crate::repair;
use crate::tests::{
    answer, any_log, calls, client_side_end, completed, interrupted, log, result, rolled_back, turn, user,
};
use conversation_store::InMemoryStore;

/// Closes a turn that did not fit into the registry, so that it counts as unfinished.
async fn close(
    store: &dyn ConversationStore,
    key: &ConversationKey,
    unfinished: &UnfinishedTurn,
) -> Result<(), StoreError> {
    Registry::default().try_close(store, key, unfinished).await
}

fn silent(name: &str) -> UnfinishedTurn {
    UnfinishedTurn::new(turn(name), None, Vec::new())
}

async fn stored(log: &[Entry]) -> (InMemoryStore, ConversationKey) {
    (crate::tests::stored(log), ConversationKey::new("c").unwrap())
}

async fn version(store: &InMemoryStore, key: &ConversationKey) -> u64 {
    store.load(key, ReadRange::All).await.unwrap().version.0
}

#[tokio::test]
async fn an_open_turn_is_closed_once() {
    let (store, key) = stored(&log(&[("t", vec![user("u").into(), calls(&["1"]).into()])])).await;
    for _ in 0..2 {
        close(&store, &key, &silent("t")).await.unwrap();
        assert_eq!(version(&store, &key).await, 4, "a result and the end");
    }
}

#[tokio::test]
async fn ended_or_followed_turn_is_not_closed_again() {
    let ended = log(&[("t", vec![user("u").into(), calls(&["1"]).into(), client_side_end()])]);
    let followed = log(&[("t", vec![user("u").into()]), ("next", vec![user("v").into()])]);
    for log in [ended, followed] {
        let (store, key) = stored(&log).await;
        close(&store, &key, &silent("t")).await.unwrap();
        assert_eq!(version(&store, &key).await, log.len() as u64);
    }
    let (store, unknown) = (InMemoryStore::new(), ConversationKey::new("unknown").unwrap());
    close(&store, &unknown, &silent("t")).await.unwrap();
    assert_eq!(version(&store, &unknown).await, 0);
}

#[tokio::test]
async fn ended_turn_can_be_rolled_back() {
    let (store, key) = stored(&log(&[("t", vec![user("u").into(), completed()])])).await;
    let undone = UnfinishedTurn { end: TurnEnd::RolledBack, ..silent("t") };
    for _ in 0..2 {
        close(&store, &key, &undone).await.unwrap();
        let log = store.load(&key, ReadRange::All).await.unwrap().entries;
        assert_eq!((log.len(), repair(&log).len()), (3, 0));
    }
}

/// Changes the log between a load and an append, in the first `times - 1` loads.
struct Interferes {
    inner: InMemoryStore,
    times: Mutex<u64>,
    with: Interference,
}

#[derive(Clone, Copy)]
enum Interference {
    /// Entries of the same turn arrive late.
    Late,
    /// The conversation is deleted, and another turn begins it again.
    BegunAnew,
}

#[async_trait]
impl Around for Interferes {
    async fn around(&self, asked: Asked<'_>, work: Work<'_>) -> Result<Option<Version>, StoreError> {
        let version = work.await?;
        let time = {
            let mut times = self.times.lock().unwrap();
            *times = times.saturating_sub(u64::from(matches!(asked, Asked::Load)));
            *times
        };
        if time > 0 && matches!(asked, Asked::Load) {
            let key = ConversationKey::new("c").unwrap();
            let (name, kind, at) = match self.with {
                Interference::Late => ("t", EntryKind::Summary("late".into()), version.unwrap()),
                Interference::BegunAnew => {
                    self.inner.delete(&key).await?;
                    ("other", user("u").into(), Version::EMPTY)
                }
            };
            let batch_key = BatchKey::new(turn(name), u32::try_from(time).unwrap(), "interferes");
            let batch = Batch::new(batch_key, vec![NewEntry::new(turn(name), kind)]);
            self.inner.append(&key, at, batch).await?;
        }
        Ok(version)
    }
}

fn interfered(inner: &InMemoryStore, times: usize, with: Interference) -> impl ConversationStore {
    let times = Mutex::new(times as u64);
    StoreAround::with(Arc::new(inner.clone()), Interferes { inner: inner.clone(), times, with })
}

#[tokio::test]
async fn closing_retries_after_late_appends_but_not_forever() {
    for (times, closed) in [(ATTEMPTS, true), (ATTEMPTS + 1, false)] {
        let (inner, key) = stored(&log(&[("t", vec![user("u").into()])])).await;
        let store = interfered(&inner, times, Interference::Late);
        let outcome = close(&store, &key, &silent("t")).await;
        assert_eq!(outcome.is_ok(), closed, "{outcome:?}");
        assert_eq!(inner.load(&key, ReadRange::All).await.unwrap().open_turn.is_none(), closed);
    }
}

#[tokio::test]
async fn turn_is_not_closed_in_recreated_conversation() {
    let (inner, key) = stored(&log(&[("t", vec![user("u").into()])])).await;
    let store = interfered(&inner, 2, Interference::BegunAnew);
    let outcome = close(&store, &key, &silent("t")).await;
    assert!(matches!(outcome, Err(StoreError::Gone)), "{outcome:?}");
    let anew = inner.load(&key, ReadRange::All).await.unwrap().entries;
    assert_eq!(anew.iter().map(|entry| &entry.turn).collect::<Vec<_>>(), [&turn("other")]);
}

/// Without this, each turn that another process has passed by would stay in the registry.
#[test]
fn fenced_turn_is_kept_for_later_turn_here() {
    let registry = Registry::default();
    let key = ConversationKey::new("c").unwrap();
    let stopped = || UnfinishedTurn { token: Some(FencingToken(1)), ..silent("t") };
    let elsewhere = registry.register(&key, stopped());
    registry.note_closed(&key, &elsewhere, Err(StoreError::Fenced)).unwrap();
    assert!(registry.unfinished_in(&key).is_empty(), "another process has the conversation");
    let here = registry.register(&key, stopped());
    registry.note_lease(&key, FencingToken(2));
    registry.note_closed(&key, &here, Err(StoreError::Fenced)).unwrap();
    assert_eq!(registry.unfinished_in(&key).len(), 1, "the later turn writes its end");
}

#[test]
fn closing_entries_have_the_round_of_the_calls() {
    let mut entries = log(&[("t", vec![user("u").into(), calls(&["1"]).into()])]);
    entries[1].round = Some(3);
    let new = closing(&entries, &end_of(&entries, &[]), &[]);
    assert_eq!(
        new.iter().map(|new| new.round).collect::<Vec<_>>(),
        [Some(3), None],
        "only messages have a round"
    );
    assert_eq!(closing(&entries[..1], &TurnEnd::RolledBack, &[])[0].round, None);
}

fn stopped(end: TurnEnd) -> UnfinishedTurn {
    UnfinishedTurn { end, ..UnfinishedTurn::new(turn("t"), Version(1), Vec::new()) }
}

#[test]
fn law_k3_only_undone_run_matches_rolled_back_end() {
    let cut = || TurnEnd::Interrupted { partial: "so far".into() };
    let closed = |end: EntryKind| log(&[("t", vec![user("u").into(), end])]);
    assert!(stopped(TurnEnd::RolledBack).is_last_to_run(&closed(rolled_back())));
    assert!(!stopped(cut()).is_last_to_run(&closed(rolled_back())), "another run was undone");
    assert!(stopped(cut()).is_last_to_run(&closed(interrupted(""))));
}

#[test]
fn law_k3_beginning_without_texts_recognizes_its_entries() {
    let started = UnfinishedTurn {
        stopped: StoppedWhile::Beginning,
        until: Some(Version(3)),
        ..UnfinishedTurn::new(turn("t"), Version(1), vec![user("u").into()])
    };
    let written = log(&[("s", vec![user("s").into(), interrupted("")]), ("t", vec![user("u").into()])]);
    assert!(started.is_last_to_run(&written[2..]));
    assert!(started.without_texts().is_last_to_run(&written[2..]));
}

#[test]
fn bytes_are_those_of_all_texts() {
    let empty = UnfinishedTurn { end: TurnEnd::RolledBack, ..stopped(TurnEnd::RolledBack) };
    let overhead = OVERHEAD + 1;
    assert_eq!(empty.weighed().bytes, overhead);
    let cut = TurnEnd::Interrupted { partial: "so far".into() };
    assert_eq!(stopped(cut.clone()).weighed().bytes, overhead + 6);
    let entry = EntryKind::from(user("u"));
    let written = serde_json::to_vec(&entry).unwrap().len();
    let unsure = UnfinishedTurn { unsure: vec![entry.clone(), entry], ..stopped(cut) };
    assert_eq!(unsure.clone().weighed().bytes, overhead + 6 + 2 * written);
    assert_eq!(unsure.without_texts().bytes, overhead);
}

#[test]
fn law_k3_entries_of_another_run_show_that_it_continued() {
    let cut = || TurnEnd::Interrupted { partial: "so far".into() };
    let of_turn = |later: EntryKind| log(&[("t", vec![user("u").into(), later])]);
    let closed = log(&[("t", vec![user("u").into(), result("1").into(), interrupted("so far")])]);
    assert!(stopped(cut()).is_last_to_run(&closed), "results may close it, with an end");
    assert!(!stopped(cut()).is_last_to_run(&of_turn(result("1").into())), "another run wrote a result");
    assert!(!stopped(cut()).is_last_to_run(&of_turn(answer("a").into())));
    assert!(!stopped(cut()).is_last_to_run(&of_turn(completed())));
    assert!(stopped(cut()).is_last_to_run(&of_turn(interrupted("so far"))));
    assert!(!stopped(cut()).is_last_to_run(&of_turn(interrupted("other"))));
    let beginning = |entries: &[Entry]| {
        UnfinishedTurn { stopped: StoppedWhile::Beginning, ..stopped(cut()) }.is_last_to_run(entries)
    };
    assert!(beginning(&[]));
    assert!(!beginning(&log(&[("t", vec![user("u").into()])])), "another run wrote the known entry");
}

proptest! {
    #[test]
    fn closing_a_turn_changes_nothing_that_is_sent(log in any_log()) {
        let Some(last) = log.chunk_by(same_turn).next_back() else { return Ok(()) };
        let end = end_of(last, &[]);
        let mut closed = log.clone();
        let new = closing(last, &end, &[]);
        extend_with_planned(&mut closed, new);
        prop_assert_eq!(repair(&closed), repair(&log));
        let last = closed.chunk_by(same_turn).next_back().unwrap();
        prop_assert_eq!(closing(last, &end, &[]), [], "whoever closes it again");
    }
}
