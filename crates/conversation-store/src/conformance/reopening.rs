//! A clause about data that outlives its store. The macro does not run it: a store's own tests call it, since only
//! they know how to open the same data again.

use std::sync::Arc;

use advisor_core::{ConversationKey, TurnId};

use super::{new_key, new_name, said};
use crate::{ConversationStore, EntryId, FencingToken, Page, ReadRange, StoreError, Version};

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
/// conversation_store::conformance::what_was_acknowledged_is_found_when_reopened(async || {
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
    let fence = FencingToken::new(5);
    let fenced = store.append(&new_key(), Version::EMPTY, said("t", 0, &["x"]).with_token(fence)).await;
    let token = (!matches!(fenced, Err(StoreError::Unsupported { .. }))).then_some(fence);
    let first = said("a", 0, &["1", "2"]).with_token(token);
    store.append(&key, Version::EMPTY, first.clone()).await.unwrap();
    let branch = said("b", 0, &["3"]).with_token(token).with_parent(EntryId::new(1));
    let version = store.append(&key, Version::new(2), branch.clone()).await.unwrap();
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
        assert_eq!(store.branches(&key).await.unwrap(), [2, 3].map(EntryId::new), "{time}");
        let again = store.append(&key, Version::EMPTY, first.clone()).await.unwrap();
        assert_eq!(again, Version::new(2), "the key of a batch is forgotten");
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
            if token.is_some() {
                let old = said("late", 0, &["x"]).with_token(FencingToken::new(4));
                let refused = store.append(key, version, old).await;
                assert!(
                    matches!(refused, Err(StoreError::Fenced)),
                    "the fencing token is forgotten: {refused:?}"
                );
            }
        }
    }

    let store = open().await;
    let hour = std::time::Duration::from_secs(3600);
    if let Some(leases) = store.leases() {
        let turn = TurnId::new("t").unwrap();
        let held = leases.acquire(&key, &turn, hour, None).await.unwrap();
        drop(store);
        let store = open().await;
        let leases = store.leases().unwrap();
        let refused = leases.acquire(&key, &turn, hour, None).await;
        assert!(
            matches!(refused, Err(StoreError::Locked { token, .. }) if token == held),
            "the lease is forgotten: {refused:?}"
        );
        let next = leases.acquire(&key, &turn, hour, Some(held)).await.unwrap();
        leases.release(&key, next).await.unwrap();
        drop(store);
        let store = open().await;
        let old = store.append(&key, version, said("late", 1, &["x"]).with_token(held)).await;
        assert!(matches!(old, Err(StoreError::Fenced)), "an issued token is forgotten: {old:?}");
    }
}
