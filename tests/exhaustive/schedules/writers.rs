//! Explores concurrent writers of a store, each of which writes until the store has taken all its batches.

use advisor_chain::memory::store::{BatchKey, NewEntry};
use advisor_tests::prelude::*;
use shuttle::future::spawn;

use crate::schedules::check::{key, log_of, turn_id};
use crate::schedules::explore;
use crate::schedules::leaves::{YieldingStore, yielding};

const WRITERS: usize = 3;
const BATCHES: u32 = 3;

fn batch(writer: usize, number: u32) -> Batch {
    let said = |part: &str| EntryKind::Message(Message::user(format!("{writer} {number} {part}")));
    let entries = ["a", "b"].map(|part| NewEntry::new(turn_id(writer), said(part)));
    Batch::new(BatchKey::new(turn_id(writer), number, "input"), entries.into())
}

/// Writes each batch twice at the same version, like a writer that did not receive the acknowledgement.
async fn write(store: YieldingStore, writer: usize) {
    for number in 0..BATCHES {
        let (expected, version) = loop {
            let expected = store.load(&key(), ReadRange::All).await.unwrap().version;
            match store.append(&key(), expected, batch(writer, number)).await {
                Ok(version) => break (expected, version),
                Err(StoreError::Conflict { current }) => assert!(current > expected),
                Err(error) => panic!("{error}"),
            }
        };
        let again = store.append(&key(), expected, batch(writer, number)).await;
        assert_eq!(again.ok(), Some(version), "M3: the same batch again is the same batch");
        let entries = store.load(&key(), ReadRange::All).await.unwrap().entries;
        let last = &entries[usize::try_from(version.0).unwrap() - 1];
        assert_eq!(last.kind, batch(writer, number).entries[1].kind, "M3: who was told can read it");
    }
}

#[test]
fn law_m3_concurrent_writers_leave_each_batch_once_whole() {
    explore("writers", |_time| async {
        let store = InMemoryStore::new();
        let writers = (0..WRITERS).map(|writer| spawn(write(yielding(store.clone()), writer)));
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap();
        }
        let log = log_of(&store).await;
        assert_eq!(log.len(), WRITERS * BATCHES as usize * 2, "M3: {log:?}");
        for writer in 0..WRITERS {
            let own: Vec<_> = log.iter().filter(|entry| entry.turn == turn_id(writer)).collect();
            let written = (0..BATCHES).flat_map(|number| batch(writer, number).entries);
            assert!(
                own.iter()
                    .map(|entry| &entry.kind)
                    .eq(written.map(|new| new.kind).collect::<Vec<_>>().iter())
            );
            assert!(own.chunks(2).all(|batch| batch[0].seq + 1 == batch[1].seq), "M3: a batch is whole");
        }
    });
}
