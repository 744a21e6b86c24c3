//! Tests of failures and their errors.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use advisor_conformance::crash::next_turns_are_valid;
use advisor_conformance::store::{
    Damage, a_damaged_entry_harms_no_other, batch_is_recognized_by_its_content,
};
use advisor_core::{ConversationKey, TurnId};
use chat_memory_redis::RedisStore;
use conversation_store::{ConversationStore, EntryId, FencingToken, ReadRange, StoreError, Version};
use futures::FutureExt;
use tokio::time::timeout;

use crate::relay::{Fault, Relay};
use crate::support::{Place, cluster, ended, key, said};

/// Breaks the server's next answer, on an open connection.
async fn fail(store: &RedisStore, relay: &Relay, fault: Fault) {
    store.load(&key("c"), ReadRange::LastEntries(0)).await.unwrap();
    relay.fail_with(fault);
}

fn unavailable(error: &StoreError) -> Option<bool> {
    match error {
        StoreError::Unavailable { retryable, .. } => Some(*retryable),
        _ => None,
    }
}

/// Damages an entry around the store.
async fn damage(place: &Place, key: &ConversationKey, seq: u64, damage: Damage) {
    let damaged = |at, fields| match damage {
        Damage::Body(body) if at == seq => Some(with(fields, "body", body)),
        Damage::Turn if at == seq => Some(with(fields, "turn", "no turn")),
        Damage::Removed if at == seq => None,
        _ => Some(fields),
    };
    place.rewrite_log(key.conversation(), damaged).await;
}

#[tokio::test]
async fn law_m6_a_damaged_entry_harms_no_other() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.store().await);
    let damage = async |key: &ConversationKey, seq, how| damage(&place, key, seq, how).await;
    a_damaged_entry_harms_no_other(store, damage, next_turns_are_valid).await;
    place.remove().await;
}

#[tokio::test]
async fn batch_stored_in_other_json_form_is_recognized() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.store().await);
    batch_is_recognized_by_its_content(store, async |key, seq, how| damage(&place, key, seq, how).await)
        .await;
    place.remove().await;
}

/// These fields, one of which has another value.
fn with(mut fields: Vec<String>, name: &str, value: &str) -> Vec<String> {
    let at = fields.iter().position(|field| field == name).unwrap();
    fields[at + 1] = value.into();
    fields
}

#[tokio::test]
async fn connection_lost_after_append_makes_outcome_unknown() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let store = place.store_at(&relay.url).await;
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    fail(&store, &relay, Fault::Cut).await;
    let batch = said("t", 1, &["b"]);
    let appended = store.append(&key("c"), version, batch.clone()).await;
    assert!(matches!(appended, Err(StoreError::OutcomeUnknown { .. })), "{appended:?}");
    // The same batch under the same key tells, on a new connection.
    assert_eq!(store.append(&key("c"), version, batch).await.unwrap(), Version(2));
    // A failed read never has an unknown outcome.
    fail(&store, &relay, Fault::Cut).await;
    let read = store.load(&key("c"), ReadRange::All).await.unwrap_err();
    assert_eq!(unavailable(&read), Some(true), "{read:?}");
    fail(&store, &relay, Fault::Cut).await;
    let turn = TurnId::new("t").unwrap();
    let leases = store.leases().unwrap();
    let acquired = leases.acquire(&key("c"), &turn, Duration::from_secs(60), None, false).await;
    assert!(matches!(acquired, Err(StoreError::OutcomeUnknown { .. })), "{acquired:?}");
    let held = leases.acquire(&key("c"), &turn, Duration::from_secs(60), None, false).await;
    assert!(matches!(held, Err(StoreError::Locked { turn: holder, .. }) if holder == turn));
    fail(&store, &relay, Fault::Cut).await;
    let deleted = store.delete(&key("c")).await.unwrap_err();
    assert_eq!(unavailable(&deleted), Some(true), "its mark was only read: {deleted:?}");
    assert_eq!(store.load(&key("c"), ReadRange::All).await.unwrap().version, Version(2));
    place.remove().await;
}

#[tokio::test]
async fn server_timeout_makes_outcome_unknown_and_drops_connection() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let server = place.server_at(&relay.url).await;
    let hurried = RedisStore::from_server(server.clone().with_timeout(Duration::from_millis(300)));
    let store = RedisStore::from_server(server);
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    fail(&store, &relay, Fault::Hold).await;
    let batch = said("t", 1, &["b"]);
    let late = hurried.append(&key("c"), version, batch.clone()).await;
    assert!(matches!(late, Err(StoreError::OutcomeUnknown { .. })), "{late:?}");
    assert_eq!(store.append(&key("c"), version, batch).await.unwrap(), Version(2));
    fail(&store, &relay, Fault::Hold).await;
    let late = hurried.load(&key("c"), ReadRange::All).await.unwrap_err();
    assert_eq!(unavailable(&late), Some(true), "{late:?}");
    // On a connection that answers nothing this would wait for half a minute.
    assert_eq!(store.load(&key("c"), ReadRange::All).await.unwrap().version, Version(2));
    place.remove().await;
}

#[tokio::test]
async fn abandoned_silent_connection_is_not_reused() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let server = place.server_at(&relay.url).await.with_timeout(Duration::from_secs(3));
    let store = RedisStore::from_server(server);
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    fail(&store, &relay, Fault::Hold).await;
    let given_up = timeout(Duration::from_millis(600), store.load(&key("c"), ReadRange::All)).await;
    assert!(given_up.is_err(), "{given_up:?}");
    assert_eq!(store.load(&key("c"), ReadRange::All).await.unwrap().version, version);
    // A call that is dropped at once does not replace the connection.
    let made = relay.connections();
    for _ in 0..3 {
        assert!(store.load(&key("c"), ReadRange::All).now_or_never().is_none());
        assert_eq!(store.load(&key("c"), ReadRange::All).await.unwrap().version, version);
    }
    assert_eq!(relay.connections(), made);
    place.remove().await;
}

#[tokio::test]
async fn idle_connections_that_the_server_closed_are_replaced() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let store = place.store_at(&relay.url).await;
    let mut version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    for round in 1..20 {
        relay.close().await;
        version = store.append(&key("c"), version, said("t", round, &["b"])).await.unwrap();
    }
    assert_eq!(version, Version(20));
    place.remove().await;
}

#[tokio::test]
async fn stopped_server_is_unavailable_until_it_returns() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let store = place.store_at(&relay.url).await;
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    relay.refuse(true).await;
    for round in 0..3 {
        let error = store.append(&key("c"), version, said("t", 1, &["b"])).await.unwrap_err();
        assert_eq!(unavailable(&error), Some(true), "{round}: {error:?}");
        let error = store.load(&key("c"), ReadRange::All).await.unwrap_err();
        assert_eq!(unavailable(&error), Some(true), "{round}: {error:?}");
    }
    relay.refuse(false).await;
    assert_eq!(store.append(&key("c"), version, said("t", 1, &["b"])).await.unwrap(), Version(2));
    place.remove().await;
}

#[tokio::test]
async fn dropped_append_is_never_applied_after_later_append() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let store = place.store_at(&relay.url).await;
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    fail(&store, &relay, Fault::Hold).await;
    let conversation = key("c");
    let mut dropped = store.append(&conversation, version, said("t", 1, &["dropped"]));
    tokio::select! {
        written = &mut dropped => panic!("{written:?}"),
        () = relay.failed(1) => {}
    }
    drop(dropped);
    // It was applied before it was dropped, so it came before the later one.
    let other = place.store().await;
    let later = other.append(&key("c"), version, said("t", 2, &["later"])).await;
    assert!(matches!(later, Err(StoreError::Conflict { current }) if current == Version(2)), "{later:?}");
    other.append(&key("c"), Version(2), said("t", 2, &["later"])).await.unwrap();
    let again = other.append(&key("c"), version, said("t", 1, &["dropped"])).await;
    assert_eq!(again.unwrap(), Version(2));
    assert_eq!(other.load(&key("c"), ReadRange::All).await.unwrap().version, Version(3));
    place.remove().await;
}

#[tokio::test]
async fn refused_append_is_not_written() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let store = place.store_at(&relay.url).await;
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    let refusals = [
        ("-LOADING Redis is loading the dataset in memory\r\n", true),
        ("-READONLY You can't write against a read only replica. hunter2\r\n", true),
        ("-OOM command not allowed when used memory > 'maxmemory'.\r\n", true),
        ("-CLUSTERDOWN The cluster is down\r\n", true),
        ("-MOVED 3999 127.0.0.1:6381\r\n", false),
        ("-NOPERM User hunter2 has no permissions\r\n", false),
    ];
    for (said_by_server, passing) in refusals {
        fail(&store, &relay, Fault::Say(said_by_server)).await;
        let refused = store.load(&key("c"), ReadRange::All).await.unwrap_err();
        assert_eq!(unavailable(&refused), Some(passing), "{refused:?}");
        assert!(!shown(&refused).contains("hunter2") && !shown(&refused).contains("6381"), "{refused:?}");
    }
    // An answer that makes no sense does not say what was done.
    for nonsense in ["$3\r\nyes\r\n", "*1\r\n$3\r\nyes\r\n", "*0\r\n", ":7\r\n", "?\r\n"] {
        fail(&store, &relay, Fault::Say(nonsense)).await;
        let batch = said("t", 1, &["b"]);
        let open = store.append(&key("c"), version, batch).await;
        assert!(matches!(open, Err(StoreError::OutcomeUnknown { .. })), "{nonsense}: {open:?}");
        fail(&store, &relay, Fault::Say(nonsense)).await;
        let read = store.load(&key("c"), ReadRange::All).await.unwrap_err();
        assert_eq!(unavailable(&read), Some(true), "{nonsense}: {read:?}");
    }
    assert_eq!(store.append(&key("c"), version, said("t", 1, &["b"])).await.unwrap(), Version(2));
    place.remove().await;
}

/// The conversation is gone before its mark is taken out of the index.
#[tokio::test]
async fn deletion_with_refused_last_step_has_unknown_outcome() {
    let Some(place) = Place::new() else { return };
    let relay = Relay::to(&place.url).await;
    let store = place.store_at(&relay.url).await;
    for refusal in
        ["-READONLY You can't write against a read only replica.\r\n", "-NOPERM No permissions\r\n"]
    {
        store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
        // Every script is known to the server.
        store.delete(&key("c")).await.unwrap();
        store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
        relay.fail_after(2, Fault::Say(refusal));
        let deleted = store.delete(&key("c")).await;
        assert!(matches!(deleted, Err(StoreError::OutcomeUnknown { .. })), "{refusal}: {deleted:?}");
        assert_eq!(store.load(&key("c"), ReadRange::All).await.unwrap().version, Version::EMPTY);
        store.delete(&key("c")).await.unwrap();
    }
    place.remove().await;
}

#[tokio::test]
async fn scripts_that_the_server_forgot_are_sent_again() {
    // Not on the server whose bytes other tests count.
    let Some(place) = cluster().map(Place::at) else { return };
    let store = place.store().await;
    let mut version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    for round in 1..4 {
        place.run::<()>("SCRIPT FLUSH SYNC").await;
        version = store.append(&key("c"), version, said("t", round, &["b"])).await.unwrap();
        place.run::<()>("SCRIPT FLUSH SYNC").await;
        assert_eq!(store.load(&key("c"), ReadRange::All).await.unwrap().version, version);
    }
    place.remove().await;
}

const PARTS: [&str; 5] = ["meta", "log", "turns", "batches", "forks"];

#[tokio::test]
async fn conversation_with_broken_keys_is_refused_unchanged() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    let refused_for_good = |error: &StoreError| {
        matches!(error, StoreError::Corrupt { seq: None, .. }) || unavailable(error) == Some(false)
    };
    for part in PARTS {
        for strange in ["DEL", "SET", "RPOP"] {
            let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a", "b"])).await.unwrap();
            let branch = said("u", 0, &["c"]).with_parent(EntryId(1));
            let version = store.append(&key("c"), version, branch).await.unwrap();
            match (strange, part) {
                ("DEL", _) => drop(place.run::<i64>(&format!("DEL @{part}")).await),
                ("SET", _) => drop(place.run::<String>(&format!("SET @{part} hunter2")).await),
                (_, "turns") => drop(place.run::<String>("RPOP @turns").await),
                (_, "forks") => drop(place.run::<String>("RPOP @forks").await),
                _ => drop(place.run::<i64>("HSET @meta format 3").await),
            }
            let others: Vec<_> = PARTS.into_iter().filter(|key| *key != part).collect();
            let before = place.dumps(&others).await;
            for expected in [Version::EMPTY, version] {
                let refused = store.append(&key("c"), expected, said("v", 0, &["d"])).await.unwrap_err();
                assert!(refused_for_good(&refused), "{strange} {part}: {refused:?}");
                assert!(!shown(&refused).contains("hunter2"));
            }
            for range in [ReadRange::All, ReadRange::LastEntries(1), ReadRange::LastTurns(1)] {
                let refused = store.load(&key("c"), range).await.unwrap_err();
                assert!(refused_for_good(&refused), "{strange} {part}: {refused:?}");
            }
            assert_eq!(place.dumps(&others).await, before, "{strange} {part}: something was written");
            // Deleting it is the way out.
            store.delete(&key("c")).await.unwrap();
            assert_eq!(store.load(&key("c"), ReadRange::All).await.unwrap().version, Version::EMPTY);
        }
    }
    for part in ["lease", "void"] {
        place.run::<i64>("DEL @lease @void").await;
        place.run::<i64>(&format!("RPUSH @{part} x")).await;
        let refused = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap_err();
        assert_eq!(unavailable(&refused), Some(false), "{refused:?}");
        assert_eq!(store.load(&key("c"), ReadRange::All).await.unwrap().version, Version::EMPTY);
    }
    place.remove().await;
}

#[tokio::test]
async fn branch_with_invalid_fork_is_refused_without_looping() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    for fork in ["", "x", "3 1 1", "-3 1 1 1", "3 3 1 1", "3 9 1 1"] {
        let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a", "b"])).await.unwrap();
        let branch = said("u", 0, &["c"]).with_parent(EntryId(1));
        let version = store.append(&key("c"), version, branch.clone()).await.unwrap();
        place.set_fork(fork).await;
        let before = place.dumps(&PARTS).await;
        let refused = |error| matches!(error, StoreError::Corrupt { seq: None, .. });
        for range in [ReadRange::All, ReadRange::LastEntries(2), ReadRange::LastTurns(2)] {
            assert!(refused(store.load(&key("c"), range).await.unwrap_err()), "{fork}");
        }
        assert!(refused(store.load_branch(&key("c"), EntryId(2), ReadRange::All).await.unwrap_err()));
        assert!(refused(store.read(&key("c"), EntryId::BEGINNING, 9).await.unwrap_err()), "{fork}");
        assert!(refused(store.branches(&key("c")).await.unwrap_err()), "{fork}");
        assert!(refused(store.append(&key("c"), version, branch).await.unwrap_err()), "{fork}");
        let another = said("u", 1, &["d"]).with_parent(EntryId(2));
        assert!(refused(store.append(&key("c"), version, another).await.unwrap_err()), "{fork}");
        assert_eq!(place.dumps(&PARTS).await, before, "{fork}: something was written");
        store.delete(&key("c")).await.unwrap();
    }
    place.remove().await;
}

#[tokio::test]
async fn out_of_range_limits_and_numbers_are_errors() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    let append = async |expected, batch| store.append(&key("c"), Version(expected), batch).await;
    append(0, said("t", 0, &["a"])).await.unwrap();
    let token = append(1, said("t", 1, &["a"]).with_token(FencingToken(1 << 53))).await;
    assert!(matches!(token, Err(StoreError::Unsupported { .. })), "{token:?}");
    let mut long = said("t", 1, &["a"]);
    long.key.step = "s".repeat(1_025).into();
    assert!(matches!(append(1, long.clone()).await, Err(StoreError::TooLarge)));
    long.key.step = "\u{0}".repeat(1_024).into();
    append(1, long).await.unwrap();
    let large = append(2, said("t", 2, &[&"x".repeat(64 << 20)])).await;
    assert!(matches!(large, Err(StoreError::TooLarge)), "{large:?}");
    let highest = FencingToken((1 << 53) - 1);
    let version = append(2, said("t", 2, &["x"]).with_token(highest)).await.unwrap();
    let lower = said("t", 3, &["x"]).with_token(FencingToken((1 << 53) - 2));
    let refused = store.append(&key("c"), version, lower).await;
    assert!(matches!(refused, Err(StoreError::Fenced)), "{refused:?}");
    place.remove().await;
}

#[tokio::test]
async fn deleted_conversation_leaves_its_fence_and_an_expiring_key() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    let (kept, deleted) = (key("kept"), key("c"));
    store.append(&kept, Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    let before = place.keys().await;
    for round in 0..2 {
        let leases = store.leases().unwrap();
        let token =
            leases.acquire(&deleted, &TurnId::new("t").unwrap(), Duration::from_secs(9), None, false).await;
        let batch = said("t", round, &["a", "b"]).with_token(token.unwrap());
        let token = batch.token.unwrap();
        let version = store.append(&deleted, Version::EMPTY, batch).await.unwrap();
        store.append(&deleted, version, ended("t", 9)).await.unwrap();
        if round == 0 {
            leases.release(&deleted, token).await.unwrap();
        }
        store.delete(&deleted).await.unwrap();
        let left = place.keys().await.into_iter().filter(|key| !before.contains(key)).collect::<Vec<_>>();
        let names: Vec<_> = left.iter().map(|key| key.rsplit(':').next().unwrap()).collect();
        // The second time the conversation is held while it is deleted.
        assert_eq!(names, ["lease", "void"]);
        let expires: i64 = place.run("PTTL @void").await;
        assert!((1..=86_400_000).contains(&expires), "it expires in {expires} ms");
        assert_eq!(place.run::<i64>("PTTL @lease").await, -1);
    }
    store.delete(&kept).await.unwrap();
    assert!(place.keys().await.iter().all(|key| key.ends_with(":void") || key.ends_with(":lease")));
    place.remove().await;
}

/// Returns all texts of an error.
fn shown(error: &dyn Error) -> String {
    let mut shown = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        shown += &format!("{error} {error:?}");
        source = error.source();
    }
    shown
}

#[tokio::test]
async fn negative_numbers_are_typed_errors() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    let token = FencingToken(1);
    place.run::<i64>("HSET @meta version -3").await;
    place.run::<i64>("HSET @lease fence -3 turn x until 9000000000000000").await;
    let turn = TurnId::new("t").unwrap();
    let lease = store.leases().unwrap().acquire(&key("c"), &turn, Duration::from_secs(9), None, false).await;
    let errors = [
        ("load", store.load(&key("c"), ReadRange::All).await.map(drop)),
        ("read", store.read(&key("c"), EntryId::BEGINNING, 9).await.map(drop)),
        ("branches", store.branches(&key("c")).await.map(drop)),
        ("append", store.append(&key("c"), Version(1), said("t", 1, &["b"])).await.map(drop)),
        (
            "fenced",
            store.append(&key("c"), Version(1), said("t", 1, &["b"]).with_token(token)).await.map(drop),
        ),
        ("lease", lease.map(drop)),
    ];
    for (what, outcome) in errors {
        let is_typed = matches!(
            outcome,
            Err(StoreError::Unavailable { .. }
                | StoreError::OutcomeUnknown { .. }
                | StoreError::Corrupt { .. })
        );
        assert!(is_typed, "{what}: {outcome:?}");
    }
    place.remove().await;
}
