//! Tests of the cost of a load, counted by a relay.

use std::fmt::Write;
use std::time::{Duration, Instant};

use chat_memory_redis::RedisStore;
use conversation_store::{ConversationStore, EntryId, ReadRange, Version};

use crate::relay::Relay;
use crate::support::{Place, ended, key, said};

/// The cost of one load.
#[derive(Debug)]
struct Cost {
    scripts: u64,
    bytes: u64,
    entries: usize,
}

async fn cost(store: &RedisStore, relay: &Relay, name: &str, range: ReadRange) -> Cost {
    store.load(&key(name), range).await.unwrap();
    let (bytes, scripts) = relay.counts();
    let read = store.load(&key(name), range).await.unwrap();
    let (bytes, scripts) = (relay.counts().0 - bytes, relay.counts().1 - scripts);
    let entries = read.entries.len();
    assert!(entries > 0);
    Cost { scripts, bytes, entries }
}

/// Returns the mean time of one load.
async fn time(store: &RedisStore, name: &str, range: ReadRange) -> Duration {
    let started = Instant::now();
    for _ in 0..200 {
        store.load(&key(name), range).await.unwrap();
    }
    started.elapsed() / 200
}

/// Writes a conversation of `entries` entries: turns of three messages and an end, and a last turn of
/// `last_turn` entries.
async fn write(store: &RedisStore, name: &str, entries: u32, last_turn: u32) {
    let mut version = store.load(&key(name), ReadRange::LastEntries(0)).await.unwrap().version;
    let mut first = Vec::new();
    for number in 0..(entries - last_turn) / 4 {
        let turn = format!("t{number}");
        first.extend(said(&turn, 0, &["a question", "an answer of some length", "thanks"]).entries);
        first.extend(ended(&turn, 1).entries);
    }
    for (round, part) in (0..).zip(first.chunks(2_000)) {
        let mut batch = said("writer", round, &[]);
        batch.entries = part.to_vec();
        version = store.append(&key(name), version, batch).await.unwrap();
    }
    let mut last = said("last", 0, &vec!["x"; usize::try_from(last_turn - 1).unwrap()]);
    last.entries.extend(ended("last", 1).entries);
    version = store.append(&key(name), version, last).await.unwrap();
    assert_eq!(version.as_u64(), u64::from(entries));
}

/// Forks `times` times, each time after the turn before the last one.
async fn fork_point(store: &RedisStore, name: &str, times: u32) {
    for round in 0..times {
        let read = store.load(&key(name), ReadRange::LastTurns(2)).await.unwrap();
        let before = read.entries.iter().position(|entry| entry.turn != read.entries[0].turn).unwrap();
        let parent = EntryId::new(read.entries[before - 1].seq);
        let mut batch = said(&format!("b{round}"), 0, &["again", "an answer"]).with_parent(parent);
        batch.entries.extend(ended(&format!("b{round}"), 1).entries);
        store.append(&key(name), read.version, batch).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_branch_end_cost_is_independent_of_log() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let (store, direct) = (place.store_at(&relay.url).await, place.store().await);
    for (name, entries) in [("short", 400), ("long", 100_000)] {
        write(&direct, name, entries, 4).await;
        fork_point(&direct, name, 20).await;
    }
    let mut report = String::new();
    for range in [ReadRange::LastEntries(20), ReadRange::LastTurns(7)] {
        let (short, long) =
            (cost(&store, &relay, "short", range).await, cost(&store, &relay, "long", range).await);
        writeln!(report, "{range:?} of long: {long:?}, of short: {short:?}").unwrap();
        assert_eq!((short.scripts, long.scripts), (1, 1), "round trips\n{report}");
        assert_eq!(long.entries, short.entries, "entries read\n{report}");
        assert!(long.bytes <= 2 * short.bytes, "bytes read\n{report}");
        let (long, short) = (time(&direct, "long", range).await, time(&direct, "short", range).await);
        writeln!(report, "a load takes {long:?} and {short:?}").unwrap();
    }
    let page = async |name: &str, after: u64| {
        store.read(&key(name), EntryId::new(after), 50).await.unwrap();
        let (bytes, scripts) = relay.counts();
        assert_eq!(store.read(&key(name), EntryId::new(after), 50).await.unwrap().len(), 50);
        assert_eq!(relay.counts().1 - scripts, 1);
        relay.counts().0 - bytes
    };
    let short = page("short", 100).await;
    for after in [0, 50_000, 99_900] {
        let long = page("long", after).await;
        writeln!(report, "a page of 50 after {after}: {long} bytes, of short {short}").unwrap();
        assert!(long <= 2 * short, "bytes read\n{report}");
    }
    eprintln!("{report}");
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_conversation_end_cost_is_independent_of_length() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let (store, direct) = (place.store_at(&relay.url).await, place.store().await);
    write(&store, "short", 100, 4).await;
    write(&store, "long", 100_000, 4).await;
    write(&store, "long-turn", 20_000, 10_000).await;
    let mut report = String::new();
    for range in [ReadRange::LastEntries(40), ReadRange::LastEntries(20), ReadRange::LastTurns(7)] {
        let short = cost(&store, &relay, "short", range).await;
        // The turns of the one with a long turn are another matter: they are as long as they are.
        let turns = matches!(range, ReadRange::LastTurns(_));
        for name in if turns { &["long"][..] } else { &["long", "long-turn"] } {
            let long = cost(&store, &relay, name, range).await;
            writeln!(report, "{range:?} of {name}: {long:?}, of short: {short:?}").unwrap();
            assert_eq!((short.scripts, long.scripts), (1, 1), "round trips\n{report}");
            assert_eq!(long.entries, short.entries, "entries read\n{report}");
            assert!(long.bytes <= 2 * short.bytes, "bytes read\n{report}");
            let (long, short) = (time(&direct, name, range).await, time(&direct, "short", range).await);
            writeln!(report, "a load takes {long:?} and {short:?}").unwrap();
        }
    }
    eprintln!("{report}");
    place.remove().await;
}

#[tokio::test]
async fn append_runs_one_script_first_append_runs_two() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let store = place.store_at(&relay.url).await;
    let mut version = store.append(&key("first"), Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
    version = store.append(&key("first"), version, said("t", 1, &["x"])).await.unwrap();
    let before = relay.counts().1;
    store.append(&key("first"), version, said("t", 2, &["x", "y"])).await.unwrap();
    assert_eq!(relay.counts().1 - before, 1);
    store.append(&key("c"), Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
    assert_eq!(relay.counts().1 - before, 3);
    let direct = place.store().await;
    let started = Instant::now();
    for round in 1..=500 {
        let expected = Version::new(u64::from(round));
        direct.append(&key("c"), expected, said("t", round, &["x"])).await.unwrap();
    }
    eprintln!("an append takes {:?}", started.elapsed() / 500);
    place.remove().await;
}
