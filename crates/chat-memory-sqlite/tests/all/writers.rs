//! Many at one conversation, and work whose future was dropped.

use std::task::Poll;

use chat_memory_advisor::{ConversationStore, StoreError, Version, View};
use chat_memory_sqlite::SqliteStore;
use rusqlite::Connection;
use tokio::task::JoinSet;

use crate::support::{File, key, said, texts};

const WRITERS: u32 = 8;
const APPENDS: u32 = 200;

/// Appends until it is written, at the version that the last conflict told.
async fn write_all(store: SqliteStore, writer: u32) -> Vec<u64> {
    let mut versions = Vec::new();
    let mut expected = Version::EMPTY;
    for round in 0..APPENDS {
        let batch = said(&format!("w{writer}"), round, &[&format!("{writer} {round}")]);
        expected = loop {
            match store.append(&key(), expected, batch.clone()).await {
                Err(StoreError::Conflict { current }) => expected = current,
                written => break written.unwrap(),
            }
        };
        versions.push(expected.as_u64());
    }
    versions
}

/// Half of the writers share one store, half of them another at the same file.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_writers_at_two_stores_lose_nothing_and_leave_no_gap() {
    let file = File::new();
    let stores = [file.open().await, file.open().await];
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write_all(stores[writer as usize % 2].clone(), writer));
    }
    let mut versions = writers.join_all().await.concat();
    versions.sort_unstable();
    let total = u64::from(WRITERS * APPENDS);
    assert!(versions.into_iter().eq(1..=total), "two appends led to one version, or a version is missing");
    let read = stores[0].load(&key(), View::All).await.unwrap();
    assert!(read.entries.iter().map(|entry| entry.seq).eq(1..=total));
    for writer in 0..WRITERS {
        let begin = format!("{writer} ");
        let own = texts(&read.entries).into_iter().filter(|text| text.starts_with(&begin));
        assert!(own.eq((0..APPENDS).map(|round| format!("{writer} {round}"))), "of writer {writer}");
    }
}

/// Work that has begun goes on after its future was dropped; work that waits for it is given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_is_dropped_while_it_waits_is_never_made() {
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
    assert_eq!(store.load(&key, View::All).await.unwrap().version, Version::EMPTY);
    other.execute_batch("ROLLBACK").unwrap();
    // One append of a store is made after the other.
    let last = store.append(&key, Version::new(2), said("last", 0, &["d"])).await;
    assert_eq!(last.unwrap(), Version::new(3));
    assert_eq!(texts(&store.load(&key, View::All).await.unwrap().entries), ["a", "b", "d"]);
}

/// Readers wait neither for a writer nor for its lock, and writers not for readers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_read_of_another_keeps_nobody_waiting() {
    let file = File::new();
    let store = file.open().await;
    let version = store.append(&key(), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    let other = Connection::open(file.path()).unwrap();
    other.execute_batch("BEGIN; SELECT count(*) FROM entries").unwrap();
    let version = store.append(&key(), version, said("t", 1, &["b"])).await.unwrap();
    assert_eq!(store.load(&key(), View::LastEntries(1)).await.unwrap().version, version);
    let seen: u64 = other.query_row("SELECT count(*) FROM entries", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 1, "the other sees the moment at which it began");
}
