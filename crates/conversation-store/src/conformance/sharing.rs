//! Clauses about two stores on the same data, for tests that can open a second one.

use std::sync::Arc;

use advisor_core::ConversationKey;
use tokio::task::JoinSet;

use super::{Store, new_key, said, texts};
use crate::{ReadRange, StoreError, Version};

/// An append or a deletion acknowledged by one store is visible in the other at once.
pub async fn both_stores_see_each_others_writes_at_once(one: Store, other: Store) {
    let key = new_key();
    let mut version = Version::EMPTY;
    for round in 0..40 {
        let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        version = writer.append(&key, version, said("t", round, &["x"])).await.unwrap();
        let read = reader.load(&key, ReadRange::LastEntries(1)).await.unwrap();
        assert_eq!((read.version, read.entries[0].seq), (version, version.as_u64()));
    }
    one.delete(&key).await.unwrap();
    let refused = other.append(&key, version, said("t", 99, &["x"])).await;
    assert!(matches!(refused, Err(StoreError::Gone)), "{refused:?}");
}

/// Concurrent `writers`, alternating between the two stores, append `appends` batches each. No entry is lost, and
/// each version results from exactly one append.
pub async fn writers_at_two_stores_lose_nothing(stores: [Store; 2], writers: u32, appends: u32) {
    let key = new_key();
    let mut writing = JoinSet::new();
    for (writer, store) in (0..writers).zip(stores.iter().cycle()) {
        let (store, key) = (Arc::clone(store), key.clone());
        writing.spawn(async move { write_all(&store, &key, writer, appends).await });
    }
    let mut versions = writing.join_all().await.concat();
    versions.sort_unstable();
    let total = u64::from(writers * appends);
    assert!(versions.into_iter().eq(1..=total), "two appends led to one version, or one was lost");
    let read = stores[0].load(&key, ReadRange::All).await.unwrap();
    assert_eq!(read.version, Version::new(total));
    assert!(read.entries.iter().map(|entry| entry.seq).eq(1..=total));
    for writer in 0..writers {
        let begin = format!("{writer} ");
        let own = texts(&read.entries).into_iter().filter(|text| text.starts_with(&begin));
        assert!(own.eq((0..appends).map(|round| format!("{writer} {round}"))), "of writer {writer}");
    }
}

/// Appends each batch until it is written, at the version that the last conflict reported.
async fn write_all(store: &Store, key: &ConversationKey, writer: u32, appends: u32) -> Vec<u64> {
    let mut versions = Vec::new();
    let mut expected = Version::EMPTY;
    for round in 0..appends {
        let batch = said(&format!("w{writer}"), round, &[&format!("{writer} {round}")]);
        expected = loop {
            match store.append(key, expected, batch.clone()).await {
                Err(StoreError::Conflict { current }) => expected = current,
                written => break written.unwrap(),
            }
        };
        versions.push(expected.as_u64());
    }
    versions
}
