//! Files that are deleted or replaced while the store is open.

use std::fs;
use std::path::PathBuf;

use chat_memory_sqlite::{FileReplaced, SqliteStore};
use conversation_store::{ConversationStore, ReadRange, StoreError, Version};

use crate::support::{File, key, said, texts};

/// Checks that a write was refused because a file was replaced, and that nothing was written.
fn assert_refused<T: std::fmt::Debug>(written: Result<T, StoreError>) {
    let refused = written.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Unavailable { retryable: false, source: Some(source) }
        if source.is::<FileReplaced>() && source.source().is_none()),
        "{refused:?}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_acknowledged_into_a_deleted_file() {
    for ending in ["", "-wal", "-shm"] {
        let file = File::new();
        let store = file.open().await;
        let version = store.append(&key(), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
        fs::remove_file(PathBuf::from(format!("{}{ending}", file.path().display()))).unwrap();
        assert_refused(store.append(&key(), version, said("t", 1, &["b"])).await);
        assert_refused(store.delete(&key()).await);
        let read = store.load(&key(), ReadRange::All).await.unwrap();
        assert_eq!((texts(&read.entries), read.version), (vec![String::from("a")], version), "{ending}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_acknowledged_into_a_file_that_another_one_replaced() {
    let (file, backup) = (File::new(), File::new());
    let old = backup.open().await;
    let version = old.append(&key(), Version::EMPTY, said("t", 0, &["old"])).await.unwrap();
    old.close().await;
    let store = file.open().await;
    store.append(&key(), Version::EMPTY, said("t", 0, &["new"])).await.unwrap();
    // Linked, as a restored backup is moved to its place.
    fs::rename(backup.path(), file.path()).unwrap();
    assert_refused(store.append(&key(), version, said("t", 1, &["b"])).await);
    drop(store);
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_that_leads_elsewhere_is_noticed() {
    let (file, other) = (File::new(), File::new());
    other.open().await.close().await;
    let link = file.path().with_file_name("link.sqlite");
    std::os::unix::fs::symlink(file.path(), &link).unwrap();
    let store = SqliteStore::open(&link).await.unwrap();
    let version = store.append(&key(), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(other.path(), &link).unwrap();
    assert_refused(store.append(&key(), version, said("t", 1, &["b"])).await);
}

/// What other stores of this and other processes do to the files is no replacement.
#[tokio::test]
async fn files_stay_through_other_stores_checkpoints_and_vacuum() {
    let file = File::new();
    let store = file.open().await;
    let mut version = Version::EMPTY;
    for round in 0..3 {
        version = store.append(&key(), version, said("t", round, &["a"])).await.unwrap();
        let other = file.open().await;
        version = other.append(&key(), version, said("u", round, &["b"])).await.unwrap();
        other.close().await;
        file.tamper("PRAGMA wal_checkpoint(TRUNCATE); VACUUM");
    }
    assert_eq!(version, Version(6));
}
