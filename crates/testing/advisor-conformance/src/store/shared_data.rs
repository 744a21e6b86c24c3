//! Clauses about data that several stores open, one after another or at once. The macro does not run them: a store's
//! own tests call them, since only they know how to open the same data again.

use std::sync::Arc;

use advisor_core::{ConversationKey, TurnId};
use conversation_store::StoreError::{Fenced, Gone, Locked};
use conversation_store::{ConversationStore, EntryId, FencingToken, Page, ReadRange, StoreError, Version};
use tokio::task::JoinSet;

use super::{Store, new_key, new_name, said, texts};

/// What was acknowledged by a store is found by the next one: entries, branches, keys of batches, the last turn,
/// fencing tokens, also those that were only issued, running leases and deletions.
///
/// `open` opens the same data each time. The store before has been dropped by then.
///
/// # Example
/// ```no_run
/// # use std::sync::Arc;
/// # use conversation_store::InMemoryStore as MyStore;
/// # async fn clause() {
/// let folder = "a folder of this test";
/// advisor_conformance::store::what_was_acknowledged_is_found_when_reopened(async || {
///     // Opens the store in `folder`.
///     Arc::new(MyStore::new())
/// }).await;
/// # }
/// ```
pub async fn what_was_acknowledged_is_found_when_reopened<S: ConversationStore + ?Sized>(
    open: impl AsyncFn() -> Arc<S>,
) {
    let tenant = new_name();
    let [key, deleted] = ["kept", "deleted"].map(|name| ConversationKey::in_tenant(&tenant, name).unwrap());
    let store = open().await;
    let fence = FencingToken(5);
    let first = said("a", 0, &["1", "2"]).with_token(fence);
    store.append(&key, Version::EMPTY, first.clone()).await.unwrap();
    let branch = said("b", 0, &["3"]).with_token(fence).with_parent(EntryId(1));
    let version = store.append(&key, Version(2), branch.clone()).await.unwrap();
    store.append(&deleted, Version::EMPTY, first.clone()).await.unwrap();
    store.delete(&deleted).await.unwrap();
    let log = store.read(&key, EntryId::BEGINNING, 9).await.unwrap();
    drop(store);

    for time in ["first", "second"] {
        let store = open().await;
        let found = store.load(&key, ReadRange::All).await.unwrap();
        assert_eq!(
            found.version, version,
            "acknowledged appends are missing when opened for the {time} time"
        );
        assert_eq!(store.read(&key, EntryId::BEGINNING, 9).await.unwrap(), log, "{time}");
        assert_eq!(store.branches(&key).await.unwrap(), [2, 3].map(EntryId), "{time}");
        let again = store.append(&key, Version::EMPTY, first.clone()).await.unwrap();
        assert_eq!(again, Version(2), "the key of a batch is forgotten");
        assert_eq!(store.append(&key, Version::EMPTY, branch.clone()).await.unwrap(), version, "{time}");
        for (turn, is_last) in [("a", false), ("b", true)] {
            let empty = said("c", 0, &[]).with_last_turn(TurnId::new(turn).unwrap());
            let behind = store.append(&key, version, empty).await;
            assert_eq!(behind.is_ok(), is_last, "the last turn is forgotten: {behind:?}");
        }
        assert_eq!(
            store.list(&Page::first(tenant.as_str(), 9)).await.unwrap(),
            std::slice::from_ref(&key),
            "{time}"
        );
        let gone = store.load(&deleted, ReadRange::All).await.unwrap();
        assert_eq!(gone.version, Version::EMPTY, "a deletion is forgotten");
        for (key, version) in [(&key, version), (&deleted, Version::EMPTY)] {
            let old = said("late", 0, &["x"]).with_token(FencingToken(4));
            refused!(store.append(key, version, old), Fenced, "the fencing token is forgotten");
        }
    }

    let store = open().await;
    let hour = std::time::Duration::from_secs(3600);
    if let Some(leases) = store.leases() {
        let turn = TurnId::new("t").unwrap();
        let held = leases.acquire(&key, &turn, hour, None, false).await.unwrap();
        drop(store);
        let store = open().await;
        let leases = store.leases().unwrap();
        let other = leases.acquire(&key, &turn, hour, None, false);
        refused!(other, Locked { token, .. } if token == held, "the lease is forgotten");
        let next = leases.acquire(&key, &turn, hour, Some(held), false).await.unwrap();
        leases.release(&key, next).await.unwrap();
        drop(store);
        let store = open().await;
        let late = said("late", 1, &["x"]).with_token(held);
        refused!(store.append(&key, version, late), Fenced, "an issued token is forgotten");
    }
}

/// What a store acknowledges is visible at once. A writer that loaded a conversation before its deletion does not recreate
/// it.
pub async fn writes_are_read_at_once(store: Store) {
    both_stores_see_each_others_writes_at_once(Arc::clone(&store), store).await;
}

/// An append or a deletion acknowledged by one store is visible in the other at once.
pub async fn both_stores_see_each_others_writes_at_once(one: Store, other: Store) {
    let key = new_key();
    let mut version = Version::EMPTY;
    for round in 0..40 {
        let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        version = writer.append(&key, version, said("t", round, &["x"])).await.unwrap();
        let read = reader.load(&key, ReadRange::LastEntries(1)).await.unwrap();
        assert_eq!((read.version, read.entries[0].seq), (version, version.0));
    }
    one.delete(&key).await.unwrap();
    refused!(other.append(&key, version, said("t", 99, &["x"])), Gone);
    assert_eq!(one.load(&key, ReadRange::All).await.unwrap().version, Version::EMPTY);
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
    let total = u64::from(2 * writers * appends);
    let each = (2..=total).step_by(2);
    assert!(versions.into_iter().eq(each), "two appends led to one version, or one was lost");
    let read = stores[0].load(&key, ReadRange::All).await.unwrap();
    assert_eq!(read.version, Version(total));
    assert!(read.entries.iter().map(|entry| entry.seq).eq(1..=total));
    let texts = texts(&read.entries);
    assert!(texts.chunks(2).all(|batch| batch[0] == batch[1]), "two batches were mixed");
    for writer in 0..writers {
        let begin = format!("{writer} ");
        let own = texts.iter().step_by(2).filter(|text| text.starts_with(&begin));
        assert!(own.cloned().eq((0..appends).map(|round| format!("{writer} {round}"))), "of writer {writer}");
    }
}

/// Appends each batch, of two entries, until it is written, at the version that the last conflict reported.
async fn write_all(store: &Store, key: &ConversationKey, writer: u32, appends: u32) -> Vec<u64> {
    let mut versions = Vec::new();
    let mut expected = Version::EMPTY;
    for round in 0..appends {
        let text = format!("{writer} {round}");
        let batch = said(&format!("w{writer}"), round, &[&text, &text]);
        expected = loop {
            match store.append(key, expected, batch.clone()).await {
                Err(StoreError::Conflict { current }) => expected = current,
                written => break written.unwrap(),
            }
        };
        versions.push(expected.0);
    }
    versions
}
