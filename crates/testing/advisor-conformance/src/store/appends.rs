//! Clauses about appends: atomic, versioned and idempotent.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId};
use tokio::task::{JoinSet, yield_now};

use super::{Store, new_key, said, texts, writers_at_two_stores_lose_nothing};
use conversation_store::StoreError::{Conflict, Fenced, Gone, KeyReused, NoSuchEntry};
use conversation_store::{Batch, EntryId, FencingToken, ReadRange, Snapshot, Version};

/// A new batch at another version than the current one is a conflict that reports the current version. It writes
/// none of its entries, and its key stays free.
pub async fn wrong_version_is_a_conflict(store: Store) {
    let key = new_key();
    let version = store.append(&key, Version::EMPTY, said("t", 0, &["a", "b"])).await.unwrap();
    let refused = said("t", 1, &["c", "d", "e"]);
    for expected in [0, 1, 3].map(Version) {
        match store.append(&key, expected, refused.clone()).await {
            Err(Conflict { current }) => assert_eq!(current, version),
            other => panic!("expected a conflict at {expected}, got {other:?}"),
        }
    }
    let read = store.load(&key, ReadRange::All).await.unwrap();
    assert_eq!((texts(&read.entries), read.version), (vec![String::from("a"), "b".into()], version));
    assert_eq!(store.append(&key, version, refused).await.unwrap(), Version(5));
}

/// While batches of three are appended, no load sees a part of one, and the version matches the entries.
pub async fn batch_is_never_read_partially(store: Store) {
    let key = new_key();
    let (writer, written) = (Arc::clone(&store), key.clone());
    let writing = tokio::task::spawn(async move {
        for round in 0..50 {
            let version = Version(u64::from(round) * 3);
            writer.append(&written, version, said("t", round, &["1", "2", "3"])).await.unwrap();
        }
    });
    while !writing.is_finished() {
        let read = store.load(&key, ReadRange::All).await.unwrap();
        assert_eq!(read.entries.len() % 3, 0, "half a batch was read");
        assert_eq!(read.version.0, read.entries.len() as u64);
        yield_now().await;
    }
    writing.await.unwrap();
}

/// While a conversation is deleted and begun again, each load shows one of the two, whole, and no damage.
pub async fn a_deletion_is_never_read_partially(store: Store) {
    let key = new_key();
    let (writer, written) = (Arc::clone(&store), key.clone());
    let writing = tokio::task::spawn(async move {
        for time in 0..40 {
            let text = time.to_string();
            let batch = said("t", 0, &vec![&*text; 1 + time % 3]);
            writer.append(&written, Version::EMPTY, batch).await.unwrap();
            yield_now().await;
            writer.delete(&written).await.unwrap();
        }
    });
    while !writing.is_finished() {
        let read = store.load(&key, ReadRange::All).await.unwrap();
        let texts = texts(&read.entries);
        assert_eq!(read.version.0, texts.len() as u64, "an entry is missing or damaged: {read:?}");
        let whole = texts.first().map(|text| 1 + text.parse::<usize>().unwrap() % 3);
        assert_eq!(texts.len(), whole.unwrap_or_default(), "{texts:?}");
        assert!(texts.iter().all(|text| *text == texts[0]), "two conversations were mixed: {texts:?}");
        yield_now().await;
    }
    writing.await.unwrap();
}

/// Keys of batches differ in any part: turns by their case, rounds by all 32 bits, steps by each of 512 bytes.
pub async fn keys_of_batches_are_compared_whole(store: Store) {
    let long = "x".repeat(511);
    let (longer, other) = (format!("{long}1"), format!("{long}2"));
    let steps =
        ["", "s", "S", " s", "s ", "s/", "/s", "s\u{0}", "s\u{0}s", "s\n", "é", "e\u{301}", &longer, &other];
    let rounds = [0, 1, 1 << 8, 1 << 16, 1 << 31, u32::MAX];
    let of_steps = steps.map(|step| ("t", 0, step));
    let keys = of_steps.into_iter().chain(rounds.map(|round| ("t", round, "r"))).chain([("T", 0, "s")]);
    let (key, mut version, mut written) = (new_key(), Version::EMPTY, Vec::new());
    for (turn, round, step) in keys {
        let mut batch = said(turn, round, &[&format!("{turn} {round} {step}")]);
        batch.key.step = step.into();
        let after = store.append(&key, version, batch.clone()).await;
        version = version.after(1);
        assert_eq!(after.unwrap(), version, "{key:?}", key = batch.key);
        written.push((batch, version));
    }
    for (batch, after) in written {
        let again = store.append(&key, Version::EMPTY, batch.clone()).await;
        assert_eq!(again.unwrap(), after, "{key:?}", key = batch.key);
    }
    let behind = |turn: &str| said("u", 0, &["x"]).with_last_turn(TurnId::new(turn).unwrap());
    refused!(store.append(&key, version, behind("t")), Gone, "the last turn is T, not t");
    store.append(&key, version, behind("T")).await.unwrap();
}

/// Entries keep their order where a number needs a second byte: read whole, in pages, from the end, and along a
/// branch.
pub async fn a_long_log_keeps_its_order(store: Store) {
    let (key, mut version) = (new_key(), Version::EMPTY);
    let texts_from = |first: u64| (first..first + 20).map(|number| number.to_string()).collect::<Vec<_>>();
    for round in 0..30 {
        let text = texts_from(version.0 + 1);
        let batch = said("t", round, &text.iter().map(String::as_str).collect::<Vec<_>>());
        version = store.append(&key, version, batch).await.unwrap();
    }
    let branch = said("u", 0, &["601"]).with_parent(EntryId(513));
    let version = store.append(&key, version, branch).await.unwrap();
    let log = store.read(&key, EntryId::BEGINNING, 1_000).await.unwrap();
    assert!(log.iter().map(|entry| entry.seq).eq(1..=601), "the log is not in order");
    assert!(log.iter().all(|entry| texts(std::slice::from_ref(entry)) == [entry.seq.to_string()]));
    for after in [0, 250, 255, 256, 500, 511, 590] {
        let page = store.read(&key, EntryId(after), 20).await.unwrap();
        assert!(page.iter().map(|entry| entry.seq).eq(after + 1..=601.min(after + 20)), "after {after}");
    }
    for range in [ReadRange::All, ReadRange::LastEntries(300), ReadRange::LastTurns(1)] {
        assert_eq!(store.load(&key, range).await.unwrap(), Snapshot::from_log(&log, range), "{range:?}");
    }
    assert_eq!(store.branches(&key).await.unwrap(), [600, 601].map(EntryId));
    assert_eq!(version, Version(601));
}

/// A key that was used for other entries is refused at any version, and nothing is written.
pub async fn same_key_with_other_content_is_refused(store: Store) {
    let key = new_key();
    let version = store.append(&key, Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    for other in [said("t", 0, &["b"]), said("t", 0, &["a", "a"]), said("t", 0, &[])] {
        for expected in [Version::EMPTY, version, Version(9)] {
            refused!(store.append(&key, expected, other.clone()), KeyReused);
        }
    }
    assert_eq!(texts(&store.load(&key, ReadRange::All).await.unwrap().entries), ["a"]);
}

/// The same batch under the same key returns the first version again and changes nothing, whatever version it expects.
pub async fn key_is_checked_before_version(store: Store) {
    let key = new_key();
    let first = said("t", 0, &["a"]);
    let version = store.append(&key, Version::EMPTY, first.clone()).await.unwrap();
    store.append(&key, version, said("t", 1, &["b"])).await.unwrap();
    for expected in [0, 1, 2, 7].map(Version) {
        assert_eq!(store.append(&key, expected, first.clone()).await.unwrap(), version);
    }
    assert_eq!(texts(&store.load(&key, ReadRange::All).await.unwrap().entries), ["a", "b"]);
}

/// Eight concurrent writers lose no entry, and the numbers have no gaps.
pub async fn versions_have_no_gaps_under_eight_writers(store: Store) {
    writers_at_two_stores_lose_nothing([Arc::clone(&store), store], 8, 10).await;
}

/// If several writers start a conversation at once, one succeeds and the others get a conflict. Equal batches
/// count as one.
pub async fn one_of_concurrent_starts_succeeds(store: Store) {
    for _ in 0..20 {
        let key = new_key();
        let mut writers = JoinSet::new();
        for writer in 0..8 {
            let (store, key) = (Arc::clone(&store), key.clone());
            // Half of them write the same batch.
            let turn = if writer % 2 == 0 { "same".into() } else { format!("w{writer}") };
            writers.spawn(async move {
                let written = store.append(&key, Version::EMPTY, said(&turn, 0, &["x", "y"])).await;
                (turn, written)
            });
        }
        let mut winners = Vec::new();
        for (turn, written) in writers.join_all().await {
            match written {
                Ok(version) => winners.push((turn, version)),
                Err(Conflict { current }) => assert_eq!(current, Version(2)),
                other => panic!("{other:?}"),
            }
        }
        let same = winners.iter().filter(|(turn, _)| turn == "same").count();
        assert!(matches!((winners.len(), same), (1, 0) | (4, 4)), "{winners:?}");
        assert!(winners.iter().all(|(_, version)| *version == Version(2)), "{winners:?}");
    }
}

/// Version and entry numbers beyond the store's range do not exist; they are typed errors.
pub async fn numbers_beyond_all_bounds_are_typed_errors(store: Store) {
    let key = new_key();
    let (last, none) = (Version(u64::MAX), EntryId(u64::MAX));
    refused!(store.append(&key, last, said("t", 0, &["a"])), Gone);
    let version = store.append(&key, Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    refused!(store.append(&key, last, said("t", 1, &["a"])), Conflict { current } if current == version);
    let behind_none = said("t", 1, &["a"]).with_parent(none);
    refused!(store.append(&key, version, behind_none), NoSuchEntry { id } if id == none);
    refused!(store.load_branch(&key, none, ReadRange::All), NoSuchEntry { id } if id == none);
    assert_eq!(store.read(&key, none, usize::MAX).await.unwrap(), []);
}

/// The highest token of a conversation outlives its deletion: a writer with a lower one stays refused, whether the
/// conversation begins anew or not.
pub async fn a_used_fence_outlives_a_deletion(store: Store) {
    let key = new_key();
    let batch = |round, token| said("t", round, &["x"]).with_token(FencingToken(token));
    let version = store.append(&key, Version::EMPTY, batch(0, 5)).await.unwrap();
    for begins in [batch(1, 5), said("t", 1, &["x"]), batch(1, 7)] {
        store.delete(&key).await.unwrap();
        for expected in [Version::EMPTY, version] {
            refused!(store.append(&key, expected, batch(2, 4)), Fenced, "at {expected}");
        }
        assert_eq!(store.append(&key, Version::EMPTY, begins).await.unwrap(), version);
        refused!(store.append(&key, version, batch(2, 4)), Fenced);
    }
    store.delete(&key).await.unwrap();
    refused!(store.append(&key, Version::EMPTY, batch(2, 6)), Fenced);
}

/// A batch that names a last turn is refused if the last entry belongs to another turn. This detects a
/// conversation that was deleted and started again. A batch that was applied before is still recognised.
pub async fn another_last_turn_is_refused(store: Store) {
    let key = new_key();
    let behind = |turn: &str, round| said("t", round, &["x"]).with_last_turn(TurnId::new(turn).unwrap());
    refused!(store.append(&key, Version::EMPTY, behind("t", 0)), Gone);
    assert_eq!(store.load(&key, ReadRange::All).await.unwrap(), Snapshot::default(), "nor is it made by it");
    let version = store.append(&key, Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
    let version = store.append(&key, version, behind("t", 1)).await.unwrap();
    refused!(store.append(&key, version, behind("u", 2)), Gone);
    let later = store.append(&key, version, said("u", 0, &["y"])).await.unwrap();
    assert_eq!(store.append(&key, version, behind("t", 1)).await.unwrap(), version, "the key goes first");
    refused!(store.append(&key, version, behind("t", 2)), Conflict { .. }, "and so does the version");
    store.delete(&key).await.unwrap();
    let anew = store.append(&key, Version::EMPTY, said("v", 0, &["1", "2", "3"])).await.unwrap();
    assert_eq!(anew, later);
    refused!(store.append(&key, later, behind("u", 1)), Gone);
    assert_eq!(store.load(&key, ReadRange::All).await.unwrap().entries.len(), 3);
}

/// Checks the order in which several reasons to refuse a batch are reported: key, fencing token, existence, version,
/// last turn, parent. This also holds for an empty batch. [`admit`](conversation_store::admit) has this order.
pub async fn batch_refusals_are_reported_in_fixed_order(store: Store) {
    let key = new_key();
    let (old, new) = (FencingToken(4), FencingToken(5));
    store.append(&key, Version::EMPTY, said("t", 0, &["x"]).with_token(new)).await.unwrap();
    let behind_nothing = said("t", 1, &["y"]).with_parent(EntryId(9));
    let behind_another = behind_nothing.clone().with_last_turn(TurnId::new("u").unwrap());
    refused!(store.append(&key, Version(7), behind_another.clone().with_token(old)), Fenced);
    let other_content = said("t", 0, &["y"]).with_token(old);
    refused!(store.append(&key, Version(7), other_content), KeyReused);
    refused!(store.append(&key, Version(7), behind_another.clone()), Conflict { .. });
    refused!(store.append(&key, Version(1), behind_another), Gone);
    refused!(store.append(&key, Version(1), behind_nothing.clone()), NoSuchEntry { .. });

    let Some(leases) = store.leases() else { return };
    let (key, turn, hour) = (new_key(), TurnId::new("t").unwrap(), Duration::from_secs(3600));
    let old = leases.acquire(&key, &turn, hour, None, false).await.unwrap();
    let new = leases.acquire(&key, &turn, hour, Some(old), false).await.unwrap();
    for batch in [behind_nothing.clone(), said("t", 1, &[])] {
        for expected in [Version::EMPTY, Version(7)] {
            refused!(store.append(&key, expected, batch.clone().with_token(old)), Fenced);
        }
    }
    refused!(store.append(&key, Version(7), behind_nothing.clone().with_token(new)), Gone);
    refused!(store.append(&key, Version::EMPTY, behind_nothing.with_token(new)), NoSuchEntry { .. });
}

/// A batch without entries is refused as any other is. Otherwise it returns the version and changes nothing: it
/// begins no conversation, and uses neither its key nor its token.
pub async fn an_empty_batch_changes_nothing(store: Store) {
    let key = new_key();
    let empty = |round| said("t", round, &[]);
    refused!(store.append(&key, Version(1), empty(0)), Gone);
    for version in [Version::EMPTY, Version(1), Version(2)] {
        let round = u32::try_from(version.0).unwrap();
        for times in 0..2 {
            assert_eq!(store.append(&key, version, empty(round)).await.unwrap(), version, "{times}");
        }
        let read = store.load(&key, ReadRange::All).await.unwrap();
        assert_eq!((read.version, read.entries.len() as u64), (version, version.0));
        refused!(store.append(&key, Version(9), empty(round)), Conflict { .. } | Gone);
        refused!(store.append(&key, version, empty(round).with_parent(EntryId(9))), NoSuchEntry { .. });
        let written = store.append(&key, version, said("t", round, &["x"])).await.unwrap();
        assert_eq!(written, version.after(1), "its key was used");
        refused!(store.append(&key, version, empty(round)), KeyReused);
    }
    let version = Version(3);
    let unchanged = store.append(&key, version, empty(8).with_token(FencingToken(9))).await;
    assert_eq!(unchanged.unwrap(), version);
    let lower = said("t", 8, &["x"]).with_token(FencingToken(5));
    assert_eq!(store.append(&key, version, lower).await.unwrap(), version.after(1), "its token was used");
}

/// An append that is dropped at any await point is applied as a whole or not at all. The conversation remains
/// usable.
pub async fn dropped_append_is_applied_completely_or_never(store: Store) {
    let key = new_key();
    for polls in 0..12 {
        let version = store.load(&key, ReadRange::LastEntries(0)).await.unwrap().version;
        let dropped = said("dropped", polls, &["1", "2", "3"]);
        poll_times(store.append(&key, version, dropped), polls).await;
        write_whatever_comes(&store, &key, said("next", polls, &["n"])).await;
    }
    let read = store.load(&key, ReadRange::All).await.unwrap();
    let turns = read.entries.chunk_by(|one, next| one.turn == next.turn);
    for turn in turns.filter(|turn| turn[0].turn.as_str() == "dropped") {
        assert_eq!(texts(turn), ["1", "2", "3"], "a part of a batch was written");
    }
    assert!(read.entries.iter().map(|entry| entry.seq).eq(1..=read.version.0));
}

async fn write_whatever_comes(store: &Store, key: &ConversationKey, batch: Batch) -> Version {
    loop {
        let version = store.load(key, ReadRange::LastEntries(0)).await.unwrap().version;
        match store.append(key, version, batch.clone()).await {
            Err(Conflict { .. }) => yield_now().await,
            written => return written.unwrap(),
        }
    }
}

/// Polls a future `times` times, then drops it.
async fn poll_times(work: impl Future, times: u32) {
    let mut work = Box::pin(work);
    for _ in 0..times {
        let ended = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx).is_ready())).await;
        if ended {
            return;
        }
        yield_now().await;
    }
}
