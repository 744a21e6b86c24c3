//! Many at one conversation, and work whose future was dropped.

use std::sync::Arc;
use std::task::Poll;

use advisor_conformance::store::{
    both_stores_see_each_others_writes_at_once, writers_at_two_stores_lose_nothing,
};
use conversation_store::{ConversationStore, ReadRange, Version};
use rusqlite::Connection;

use crate::support::{File, key, said, texts};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_writers_on_two_stores_leave_no_gap() {
    let file = File::new();
    let stores = [Arc::new(file.open().await), Arc::new(file.open().await)];
    writers_at_two_stores_lose_nothing(stores.map(|store| store as _), 8, 200).await;
}

#[tokio::test]
async fn two_stores_share_writes_at_once() {
    let file = File::new();
    let (one, other) = (file.open().await, file.open().await);
    both_stores_see_each_others_writes_at_once(Arc::new(one), Arc::new(other)).await;
}

/// Work that has begun continues after its future was dropped; waiting work is discarded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn append_dropped_while_waiting_is_never_applied() {
    let file = File::new();
    let store = file.open().await;
    let other = Connection::open(file.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let key = key();
    let mut begun = store.append(&key, Version::EMPTY, said("begun", 0, &["a", "b"]));
    let mut waiting = store.append(&key, Version::EMPTY, said("waiting", 0, &["c"]));
    assert!(matches!(futures::poll!(&mut begun), Poll::Pending));
    assert!(matches!(futures::poll!(&mut waiting), Poll::Pending));
    drop((begun, waiting));
    // Reading waits for nobody.
    assert_eq!(store.load(&key, ReadRange::All).await.unwrap().version, Version::EMPTY);
    other.execute_batch("ROLLBACK").unwrap();
    // One append of a store is made after the other.
    let last = store.append(&key, Version(2), said("last", 0, &["d"])).await;
    assert_eq!(last.unwrap(), Version(3));
    assert_eq!(texts(&store.load(&key, ReadRange::All).await.unwrap().entries), ["a", "b", "d"]);
}

/// Readers wait neither for a writer nor for its lock, and writers not for readers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_read_blocks_no_writer() {
    let file = File::new();
    let store = file.open().await;
    let version = store.append(&key(), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    let other = Connection::open(file.path()).unwrap();
    other.execute_batch("BEGIN; SELECT count(*) FROM entries").unwrap();
    let version = store.append(&key(), version, said("t", 1, &["b"])).await.unwrap();
    assert_eq!(store.load(&key(), ReadRange::LastEntries(1)).await.unwrap().version, version);
    let seen: u64 = other.query_row("SELECT count(*) FROM entries", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 1, "the other sees the moment at which it began");
}
