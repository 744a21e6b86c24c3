//! Tests of failures and their errors.

use std::sync::Arc;
use std::time::Duration;

use advisor_conformance::crash::next_turns_are_valid;
use advisor_conformance::store::{
    Damage, a_damaged_entry_harms_no_other, batch_is_recognized_by_its_content,
};
use advisor_core::ConversationKey;
use conversation_store::{
    ConversationStore, EntryId, EntryKind, FencingToken, ReadRange, StoreError, Version,
};
use tokio::task::yield_now;

use crate::support::{Place, key, said};

/// Holds the row of the conversation in a transaction, until it is committed.
const HOLD: &str = "BEGIN; SELECT id FROM {schema}.conversations WHERE conversation = 'c' FOR UPDATE";

/// The backends that wait for a lock in the middle of an append to this schema.
const WAITING: &str = "SELECT pid FROM pg_stat_activity \
    WHERE wait_event_type = 'Lock' AND state = 'active' AND query LIKE '%' || $1 || '%append_batch%'";

/// The backend of an append that has come to the row's lock.
async fn waiting(place: &Place) -> i32 {
    let client = place.client().await;
    loop {
        if let Some(row) = client.query_opt(WAITING, &[&place.schema]).await.unwrap() {
            return row.get(0);
        }
        yield_now().await;
    }
}

fn unavailable(error: &StoreError) -> Option<bool> {
    match error {
        StoreError::Unavailable { retryable, .. } => Some(*retryable),
        _ => None,
    }
}

/// Damages an entry around the store.
async fn damage(place: &Place, key: &ConversationKey, seq: u64, damage: Damage) {
    let done = match damage {
        Damage::Body(body) => format!("UPDATE {{schema}}.entries SET body = '{body}'"),
        Damage::Turn => "UPDATE {schema}.entries SET turn = 'no turn'".into(),
        Damage::Removed => "DELETE FROM {schema}.entries".into(),
    };
    let of = "SELECT id FROM {schema}.conversations WHERE conversation";
    place
        .execute(&format!("{done} WHERE seq = {seq} AND conversation = ({of} = '{}')", key.conversation()))
        .await;
}

#[tokio::test]
async fn law_m6_a_damaged_entry_harms_no_other() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.store(2).await);
    let damage = async |key: &ConversationKey, seq, how| damage(&place, key, seq, how).await;
    a_damaged_entry_harms_no_other(store, damage, next_turns_are_valid).await;
    place.remove().await;
}

#[tokio::test]
async fn batch_stored_in_other_json_form_is_recognized() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.store(1).await);
    batch_is_recognized_by_its_content(store, async |key, seq, how| damage(&place, key, seq, how).await)
        .await;
    place.remove().await;
}

#[tokio::test]
async fn of_a_deleted_conversation_no_row_is_left() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    for name in ["kept", "deleted"] {
        let version = store.append(&key(name), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
        let branch = said("t", 1, &["b"]).with_parent(EntryId::BEGINNING);
        store.append(&key(name), version, branch).await.unwrap();
    }
    store.delete(&key("deleted")).await.unwrap();
    let client = place.client().await;
    for (table, rows) in [("conversations", 1), ("entries", 2), ("forks", 1), ("batches", 2)] {
        let count = place.sql(&format!("SELECT count(*) FROM {{schema}}.{table}"));
        let row = client.query_one(&count, &[]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), rows, "{table}");
    }
    place.remove().await;
}

#[tokio::test]
async fn head_version_beyond_stored_entries_is_refused() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    store.append(&key("c"), Version::EMPTY, said("one", 0, &["a", "b", "c"])).await.unwrap();
    place.execute("UPDATE {schema}.conversations SET version = 1000000000000").await;
    let refused = store.load(&key("c"), ReadRange::All).await;
    assert!(matches!(refused, Err(StoreError::Corrupt { seq: Some(4), .. })), "{refused:?}");
    place.remove().await;
}

#[tokio::test]
async fn connection_lost_after_append_makes_outcome_unknown() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    let holder = place.client().await;
    holder.batch_execute(&place.sql(HOLD)).await.unwrap();
    let (conversation, batch) = (key("c"), said("t", 1, &["b"]));
    let (appended, killed) = tokio::join!(store.append(&conversation, version, batch.clone()), async {
        let pid = waiting(&place).await;
        place.client().await.query_one("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap()
    });
    assert!(killed.get::<_, bool>(0));
    assert!(matches!(appended, Err(StoreError::OutcomeUnknown { .. })), "{appended:?}");
    holder.batch_execute("COMMIT").await.unwrap();
    // The same batch under the same key tells, on a new connection.
    assert_eq!(store.append(&key("c"), version, batch).await.unwrap(), Version(2));
    place.remove().await;
}

#[tokio::test]
async fn server_timeout_makes_outcome_unknown_and_drops_connection() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    let holder = place.client().await;
    holder.batch_execute(&place.sql(HOLD)).await.unwrap();
    let hurried = store.clone().with_timeout(Duration::from_millis(300));
    let batch = said("t", 1, &["b"]);
    let late = hurried.append(&key("c"), version, batch.clone()).await;
    assert!(matches!(late, Err(StoreError::OutcomeUnknown { .. })), "{late:?}");
    // The pool's only connection hung; another one reads.
    assert_eq!(store.load(&key("c"), ReadRange::All).await.unwrap().version, version);
    holder.batch_execute("COMMIT").await.unwrap();
    assert_eq!(store.append(&key("c"), version, batch).await.unwrap(), Version(2));
    place.remove().await;
}

/// A statement on the connection may stay unanswered for ever, and blocks all later statements on it.
#[tokio::test]
async fn connection_with_pending_answer_is_not_reused() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await.with_timeout(Duration::from_secs(5));
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    let holder = place.client().await;
    holder.batch_execute(&place.sql(HOLD)).await.unwrap();
    let conversation = key("c");
    let mut dropped = store.append(&conversation, version, said("t", 1, &["b"]));
    tokio::select! {
        written = &mut dropped => panic!("{written:?}"),
        _ = waiting(&place) => {}
    }
    drop(dropped);
    // The pool's only connection waits for the row; another one reads.
    assert_eq!(store.load(&conversation, ReadRange::All).await.unwrap().version, version);
    holder.batch_execute("COMMIT").await.unwrap();
    place.remove().await;
}

#[tokio::test]
async fn dropped_append_is_never_applied_after_later_append() {
    let Some(place) = Place::new() else { return };
    let store = place.store(2).await;
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    let holder = place.client().await;
    holder.batch_execute(&place.sql(HOLD)).await.unwrap();
    let conversation = key("c");
    let mut dropped = store.append(&conversation, version, said("t", 1, &["late"]));
    let pid = tokio::select! {
        written = &mut dropped => panic!("{written:?}"),
        pid = waiting(&place) => pid,
    };
    drop(dropped);
    let later = "SELECT {schema}.append_batch('default', 'c', 1, 't', 2, 'x', NULL, ARRAY['t'], \
        ARRAY['{\"format\":1,\"kind\":\"summary\",\"value\":{\"until\":0,\"text\":\"later\"}}'], ARRAY[NULL]::boolean[], ARRAY[1], NULL, NULL); COMMIT";
    holder.batch_execute(&place.sql(later)).await.unwrap();
    let ended = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND state = 'active'";
    while holder.query_opt(ended, &[&pid]).await.unwrap().is_some() {
        yield_now().await;
    }
    let read = store.load(&key("c"), ReadRange::All).await.unwrap();
    assert_eq!((read.version, read.entries.len()), (Version(2), 2));
    assert_eq!(read.entries[1].kind, EntryKind::Summary("later".into()));
    place.remove().await;
}

#[tokio::test]
async fn idle_connections_that_the_server_closed_are_replaced() {
    let Some(place) = Place::new() else { return };
    let pool = place.pool(1);
    let store = chat_memory_postgres::PostgresStore::from_pool(pool.clone(), &place.schema).await.unwrap();
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    let client = pool.get().await.unwrap();
    let row = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap();
    let end = "SELECT pg_terminate_backend($1)";
    place.client().await.query_one(end, &[&row.get::<_, i32>(0)]).await.unwrap();
    while !client.is_closed() {
        yield_now().await;
    }
    drop(client);
    assert_eq!(store.append(&key("c"), version, said("t", 1, &["b"])).await.unwrap(), Version(2));
    place.remove().await;
}

#[tokio::test]
async fn exhausted_pool_is_temporarily_unavailable() {
    let Some(place) = Place::new() else { return };
    let pool = place.pool(1);
    let store = chat_memory_postgres::PostgresStore::from_pool(pool.clone(), &place.schema).await.unwrap();
    let held = pool.get().await.unwrap();
    let hurried = store.clone().with_timeout(Duration::ZERO);
    let mut refused = hurried.load(&key("c"), ReadRange::All).await.unwrap_err();
    assert_eq!(unavailable(&refused), Some(true), "{refused:?}");
    refused = hurried.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap_err();
    assert_eq!(unavailable(&refused), Some(true), "{refused:?}");
    drop(held);
    assert_eq!(store.load(&key("c"), ReadRange::All).await.unwrap().version, Version::EMPTY);
    pool.close();
    refused = store.load(&key("c"), ReadRange::All).await.unwrap_err();
    assert_eq!(unavailable(&refused), Some(false), "{refused:?}");
    place.remove().await;
}

#[tokio::test]
async fn refused_append_is_not_written() {
    let Some(mut place) = Place::new() else { return };
    let version = place.store(1).await.append(&key("c"), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    let open = place.config.clone();
    // A server that only reads, such as one that is not promoted yet.
    place.config.options("-c default_transaction_read_only=on");
    let refused = place.store(1).await.append(&key("c"), version, said("t", 1, &["b"])).await.unwrap_err();
    assert_eq!(unavailable(&refused), Some(true), "{refused:?}");
    // A statement that takes too long by the server's own clock.
    place.config = open.clone();
    let holder = place.client().await;
    place.config.options("-c statement_timeout=200");
    let store = place.store(1).await;
    holder.batch_execute(&place.sql(HOLD)).await.unwrap();
    let refused = store.append(&key("c"), version, said("t", 1, &["b"])).await.unwrap_err();
    assert_eq!(unavailable(&refused), Some(true), "{refused:?}");
    holder.batch_execute("COMMIT").await.unwrap();
    place.config = open;
    assert_eq!(store.load(&key("c"), ReadRange::All).await.unwrap().version, version);
    // A schema that was removed under a store that is open.
    place.execute("DROP SCHEMA {schema} CASCADE").await;
    let refused = store.append(&key("c"), version, said("t", 1, &["b"])).await.unwrap_err();
    assert_eq!(unavailable(&refused), Some(false), "{refused:?}");
}

#[tokio::test]
async fn out_of_range_limits_and_numbers_are_errors() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    let append = async |expected, batch| store.append(&key("c"), Version(expected), batch).await;
    append(0, said("t", 0, &["a"])).await.unwrap();
    let token = append(1, said("t", 1, &["a"]).with_token(FencingToken(u64::MAX))).await;
    assert!(matches!(token, Err(StoreError::Unsupported { .. })), "{token:?}");
    let mut long = said("t", 1, &["a"]);
    long.key.step = "s".repeat(1_025).into();
    assert!(matches!(append(1, long.clone()).await, Err(StoreError::TooLarge)));
    long.key.step = "\u{0}".repeat(1_024).into();
    append(1, long).await.unwrap();
    let large = append(2, said("t", 2, &[&"x".repeat(64 << 20)])).await;
    assert!(matches!(large, Err(StoreError::TooLarge)), "{large:?}");
    place.remove().await;
}
