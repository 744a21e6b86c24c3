//! Tests of failures and their errors.

use std::time::Duration;

use common_advisors::retrieval::{Filter, VectorError, VectorStore};
use retrieval_postgres::PostgresVectors;
use tokio::task::yield_now;

use crate::support::{Place, document, found};

/// Holds the table in a transaction, until it is committed.
const HOLD: &str = "BEGIN; LOCK TABLE {schema}.documents IN ACCESS EXCLUSIVE MODE";

/// The backends that wait for that lock.
const WAITING: &str = "SELECT pid FROM pg_stat_activity \
    WHERE wait_event_type = 'Lock' AND state = 'active' AND query LIKE '%' || $1 || '%'";

/// The backend of a statement that waits for the table.
async fn waiting(place: &Place) -> i32 {
    let client = place.client().await;
    loop {
        if let Some(row) = client.query_opt(WAITING, &[&place.schema]).await.unwrap() {
            return row.get(0);
        }
        yield_now().await;
    }
}

fn all() -> Filter {
    Filter::in_tenant("acme")
}

async fn add(store: &PostgresVectors, id: &str) -> Result<(), VectorError> {
    store.upsert("acme", vec![document(id, [1.0, 0.0, 0.0])]).await
}

fn assert_unavailable<T: std::fmt::Debug>(result: &Result<T, VectorError>) {
    assert!(matches!(result, Err(VectorError::Unavailable { .. })), "{result:?}");
}

#[tokio::test]
async fn lost_connection_is_an_error_and_replaced() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    let holder = place.client().await;
    holder.batch_execute(&place.sql(HOLD)).await.unwrap();
    let (added, killed) = tokio::join!(add(&store, "a"), async {
        let pid = waiting(&place).await;
        place.client().await.query_one("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap()
    });
    assert!(killed.get::<_, bool>(0));
    assert_unavailable(&added);
    holder.batch_execute("COMMIT").await.unwrap();
    add(&store, "a").await.unwrap();
    assert_eq!(found(&store, 9, &all()).await, ["a"]);
    place.remove().await;
}

#[tokio::test]
async fn late_answer_is_an_error_and_server_stops_too() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    add(&store, "a").await.unwrap();
    let holder = place.client().await;
    holder.batch_execute(&place.sql(HOLD)).await.unwrap();
    let hurried = store.clone().with_timeout(Duration::from_millis(300));
    assert_unavailable(&add(&hurried, "b").await);
    // The server ends the statement by its own clock, while the lock is still held.
    let client = place.client().await;
    while client.query_opt(WAITING, &[&place.schema]).await.unwrap().is_some() {
        yield_now().await;
    }
    holder.batch_execute("COMMIT").await.unwrap();
    assert_eq!(found(&store, 9, &all()).await, ["a"]);
    place.remove().await;
}

/// A statement on the connection may stay unanswered for ever, and blocks all later statements on it.
#[tokio::test]
async fn connection_with_pending_answer_is_not_reused() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    let holder = place.client().await;
    let row = "BEGIN; INSERT INTO {schema}.documents VALUES ('acme', 'a', '{}', '{}', '[1,0,0]')";
    holder.batch_execute(&place.sql(row)).await.unwrap();
    let mut dropped = Box::pin(add(&store, "a"));
    tokio::select! {
        written = &mut dropped => panic!("{written:?}"),
        _ = waiting(&place) => {}
    }
    drop(dropped);
    // The pool's only connection waits for the row; another one reads.
    assert_eq!(found(&store, 9, &all()).await, [""; 0]);
    holder.batch_execute("ROLLBACK").await.unwrap();
    place.remove().await;
}

#[tokio::test]
async fn failed_statement_leaves_connection_usable() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    place.execute("ALTER TABLE {schema}.documents ADD CONSTRAINT short CHECK (length(id) < 3)").await;
    let refused =
        store.upsert("acme", vec![document("ok", [1.0, 0.0, 0.0]), document("long", [1.0, 0.0, 0.0])]).await;
    assert_unavailable(&refused);
    let shown = format!("{refused:?}");
    assert!(shown.contains("23514") && !shown.contains("text of"), "{shown}");
    assert_eq!(found(&store, 9, &all()).await, [""; 0]);
    place.execute("DROP SCHEMA {schema} CASCADE").await;
    assert_unavailable(&add(&store, "a").await);
    assert_unavailable(&store.delete(&all()).await);
}

#[tokio::test]
async fn exhausted_pool_is_unavailable() {
    let Some(place) = Place::new() else { return };
    let pool = place.pool(1);
    let store = PostgresVectors::from_pool(pool.clone(), &place.schema, 3).await.unwrap();
    let held = pool.get().await.unwrap();
    let hurried = store.clone().with_timeout(Duration::ZERO);
    assert_unavailable(&hurried.delete(&all()).await);
    drop(held);
    add(&store, "a").await.unwrap();
    pool.close();
    assert_unavailable(&add(&store, "b").await);
    place.remove().await;
}

#[tokio::test]
async fn damaged_document_is_an_error_without_its_text() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    add(&store, "a").await.unwrap();
    place.execute("UPDATE {schema}.documents SET body = 'canary'").await;
    let asked = common_advisors::retrieval::Embedding::new([1.0, 0.0, 0.0]).unwrap();
    let read = store.search(&asked, 1, &all()).await;
    assert_unavailable(&read);
    assert!(!format!("{read:?}").contains("canary"));
    place.remove().await;
}
