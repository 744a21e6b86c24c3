//! Tests of concurrent writers on one conversation of the store in memory. The other stores have a similar
//! test.

use advisor_core::{ConversationKey, Message, TurnId};
use conversation_store::{
    Batch, BatchKey, ConversationStore, EntryKind, InMemoryStore, NewEntry, ReadRange, StoreError, Version,
};
use tokio::task::{JoinSet, yield_now};

const WRITERS: u32 = 8;
const APPENDS: u32 = 200;

fn key() -> ConversationKey {
    ConversationKey::new("shared").unwrap()
}

/// Appends each batch until it is written, and gives the versions and the number of conflicts.
async fn write_all(store: InMemoryStore, writer: u32) -> (Vec<u64>, usize) {
    let (mut versions, mut conflicts, mut version) = (Vec::new(), 0, Version::EMPTY);
    let turn = TurnId::new(&format!("w{writer}")).unwrap();
    for round in 0..APPENDS {
        let kind = EntryKind::Message(Message::user(format!("{writer} {round}")));
        let entries = vec![NewEntry::new(turn.clone(), kind)];
        let batch = Batch::new(BatchKey::new(turn.clone(), round, "said"), entries);
        version = loop {
            match store.append(&key(), version, batch.clone()).await {
                Err(StoreError::Conflict { current }) => (version, conflicts) = (current, conflicts + 1),
                written => break written.unwrap(),
            }
            yield_now().await;
        };
        versions.push(version.as_u64());
        yield_now().await;
    }
    (versions, conflicts)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_writers_of_two_hundred_appends_lose_nothing() {
    let store = InMemoryStore::new();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write_all(store.clone(), writer));
    }
    let (versions, conflicts): (Vec<_>, Vec<_>) = writers.join_all().await.into_iter().unzip();
    let mut versions = versions.concat();
    versions.sort_unstable();
    let all = u64::from(WRITERS * APPENDS);
    assert!(versions.into_iter().eq(1..=all), "two appends led to one version, or one was lost");
    let read = store.load(&key(), ReadRange::All).await.unwrap();
    assert!(read.entries.iter().map(|entry| entry.seq).eq(1..=all));
    for writer in 0..WRITERS {
        let turn = format!("w{writer}");
        let own = read.entries.iter().filter(|entry| entry.turn.as_str() == turn);
        let texts = own.map(|entry| entry.kind.as_message().unwrap().text());
        let expected = (0..APPENDS).map(|round| format!("{writer} {round}"));
        assert!(texts.eq(expected), "appends of writer {writer}");
    }
    assert!(conflicts.into_iter().sum::<usize>() > 0, "nobody met anybody");
}
