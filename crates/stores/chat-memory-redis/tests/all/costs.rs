//! Tests of the cost of a load, counted by a relay.

use advisor_conformance::store::{fork_near_the_end, write_long};
use conversation_store::{ConversationStore, EntryId, ReadRange, Version};

use crate::relay::Relay;
use crate::support::{Place, key, said};

/// Measures the second run of some work: the bytes that the server sends. It runs one script.
async fn cost(relay: &Relay, read: impl AsyncFn() -> usize) -> u64 {
    assert!(read().await > 0);
    let (bytes, scripts) = relay.counts();
    read().await;
    assert_eq!(relay.counts().1 - scripts, 1);
    relay.counts().0 - bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_branch_end_cost_is_independent_of_log() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let (store, direct) = (place.store_at(&relay.url).await, place.store().await);
    for (name, entries) in [("short", 400), ("long", 100_000)] {
        write_long(&direct, &key(name), entries, 4).await;
        fork_near_the_end(&direct, &key(name), 20).await;
    }
    for range in [ReadRange::LastEntries(20), ReadRange::LastTurns(7)] {
        let load = async |name: &str| {
            cost(&relay, async || store.load(&key(name), range).await.unwrap().entries.len()).await
        };
        let (short, long) = (load("short").await, load("long").await);
        assert!(long <= 2 * short, "{range:?}: {long} bytes, of short {short}");
    }
    let page = async |name: &str, after: u64| {
        let after = EntryId(after);
        cost(&relay, async || store.read(&key(name), after, 50).await.unwrap().len()).await
    };
    let short = page("short", 100).await;
    for after in [0, 50_000, 99_900] {
        let long = page("long", after).await;
        assert!(long <= 2 * short, "a page of 50 after {after}: {long} bytes, of short {short}");
    }
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_conversation_end_cost_is_independent_of_length() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let store = place.store_at(&relay.url).await;
    for (name, entries, last_turn) in [("short", 100, 4), ("long", 100_000, 4), ("long-turn", 20_000, 10_000)]
    {
        write_long(&store, &key(name), entries, last_turn).await;
    }
    for range in [ReadRange::LastEntries(40), ReadRange::LastEntries(20), ReadRange::LastTurns(7)] {
        let load = async |name: &str| {
            cost(&relay, async || store.load(&key(name), range).await.unwrap().entries.len()).await
        };
        let short = load("short").await;
        // The turns of the one with a long turn are as long as they are.
        let turns = matches!(range, ReadRange::LastTurns(_));
        for name in if turns { &["long"][..] } else { &["long", "long-turn"] } {
            let long = load(name).await;
            assert!(long <= 2 * short, "{range:?} of {name}: {long} bytes, of short {short}");
        }
    }
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
    place.remove().await;
}
