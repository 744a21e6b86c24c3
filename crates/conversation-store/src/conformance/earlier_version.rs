//! A clause about data that an earlier version of a store wrote. The macro does not run it: a store's own tests
//! call it, since only those tests have such data.

use advisor_core::ConversationKey;
use futures::TryStreamExt;

use super::{Store, said};
use crate::{ReadRange, export};

/// Checks that a conversation written by an earlier version is exported as that version exported it. It must also
/// accept another turn.
pub async fn reads_data_of_earlier_version(store: Store, key: &ConversationKey, exported: &str) {
    let lines: String = export(Store::clone(&store), key.clone()).try_collect().await.unwrap();
    assert_eq!(lines, exported);
    let before = store.load(key, ReadRange::LastEntries(1)).await.unwrap();
    let last = before.entries.last().unwrap();
    let batch = said("of-this-version", 0, &["and now?"]).with_last_turn(last.turn.clone());
    let version = store.append(key, before.version, batch.clone()).await.unwrap();
    assert_eq!(version, before.version.after(1));
    assert_eq!(store.append(key, before.version, batch).await.unwrap(), version, "it is known by its key");
    let after = store.load(key, ReadRange::LastTurns(1)).await.unwrap();
    assert_eq!(after.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [version.as_u64()]);
}
