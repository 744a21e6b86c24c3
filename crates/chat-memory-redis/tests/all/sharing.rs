//! Many writers, and stores that share a database.

use std::sync::Arc;

use chat_memory_advisor::{ConversationStore, StoreError, Version, View};
use chat_memory_redis::RedisStore;
use tokio::task::JoinSet;

use crate::support::{Place, key, said};

/// Appends so many batches, each until it is written, and counts the conflicts.
async fn write(store: &RedisStore, writer: u32, batches: u32) -> (Vec<u64>, usize) {
    let (mut versions, mut conflicts) = (Vec::new(), 0);
    let key = key("shared");
    let mut version = store.load(&key, View::LastEntries(0)).await.unwrap().version;
    for round in 0..batches {
        let batch = said(&format!("w{writer}"), round, &["x"]);
        version = loop {
            match store.append(&key, version, batch.clone()).await {
                Err(StoreError::Conflict { current }) => (version, conflicts) = (current, conflicts + 1),
                written => break written.unwrap(),
            }
        };
        versions.push(version.as_u64());
    }
    (versions, conflicts)
}

/// Two stores with a connection each, half of the writers on either.
async fn writers(place: &Place, writers: u32, batches: u32) {
    let stores = [place.store().await, place.store().await].map(Arc::new);
    let mut writing = JoinSet::new();
    for (writer, store) in (0..writers).zip(stores.iter().cycle()) {
        let store = Arc::clone(store);
        writing.spawn(async move { write(&store, writer, batches).await });
    }
    let (written, conflicts): (Vec<_>, Vec<_>) = writing.join_all().await.into_iter().unzip();
    let mut versions = written.concat();
    versions.sort_unstable();
    let all = u64::from(batches * writers);
    assert!(versions.into_iter().eq(1..=all), "two appends led to one version, or one was lost");
    let read = stores[0].load(&key("shared"), View::All).await.unwrap();
    assert_eq!(read.version, Version::new(all));
    assert!(read.entries.iter().map(|entry| entry.seq).eq(1..=all));
    for writer in 0..writers {
        let turn = format!("w{writer}");
        let own = read.entries.iter().filter(|entry| entry.turn.as_str() == turn).count();
        assert_eq!(own, usize::try_from(batches).unwrap(), "appends of writer {writer} were lost");
    }
    eprintln!("{all} appends, {} conflicts", conflicts.into_iter().sum::<usize>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_writers_of_two_hundred_appends_lose_nothing() {
    let Some(place) = Place::new() else { return };
    writers(&place, 8, 200).await;
    place.remove().await;
}

#[tokio::test]
async fn two_stores_see_what_the_other_one_wrote_at_once() {
    let Some(place) = Place::new() else { return };
    let (one, other) = (place.store().await, place.store().await);
    let key = key("seen");
    let mut version = Version::EMPTY;
    for round in 0..40 {
        let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        version = writer.append(&key, version, said("t", round, &["x"])).await.unwrap();
        let read = reader.load(&key, View::LastEntries(1)).await.unwrap();
        assert_eq!((read.version, read.entries[0].seq), (version, version.as_u64()));
    }
    one.delete(&key).await.unwrap();
    let refused = other.append(&key, version, said("t", 99, &["x"])).await;
    assert!(matches!(refused, Err(StoreError::Gone)), "{refused:?}");
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_begin_one_conversation_one_does_and_equal_batches_are_one() {
    let Some(place) = Place::new() else { return };
    let store = place.store().await;
    for round in 0..20 {
        let mut writers = JoinSet::new();
        for writer in 0..8 {
            let store = store.clone();
            // Half of them write the same batch.
            let turn = if writer % 2 == 0 { "same".into() } else { format!("w{writer}") };
            let key = key(&format!("c{round}"));
            writers.spawn(async move {
                let written = store.append(&key, Version::EMPTY, said(&turn, 0, &["x", "y"])).await;
                (turn, written)
            });
        }
        let mut winners: Vec<_> = Vec::new();
        for (turn, written) in writers.join_all().await {
            match written {
                Ok(version) => winners.push((turn, version)),
                Err(StoreError::Conflict { current }) => assert_eq!(current, Version::new(2)),
                other => panic!("{other:?}"),
            }
        }
        let same = winners.iter().filter(|(turn, _)| turn == "same").count();
        assert!(matches!((winners.len(), same), (1, 0) | (4, 4)), "{winners:?}");
        assert!(winners.iter().all(|(_, version)| *version == Version::new(2)), "{winners:?}");
    }
    place.remove().await;
}
