//! Files that are opened again, at once, or refused.

use chat_memory_sqlite::{OpenError, SqliteStore};
use conversation_store::{ConversationStore, EntryKind, ReadRange, StoreError, Version};
use futures::FutureExt;

use crate::support::{File, key, said, texts};

#[tokio::test]
async fn acknowledged_append_is_in_files_of_open_store() {
    let file = File::new();
    let store = file.open().await;
    store.append(&key(), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    // As whoever comes after a killed process finds them.
    let copy = File::new();
    for ending in ["", "-wal"] {
        let name = |file: &File| format!("{}{ending}", file.path().display());
        std::fs::copy(name(&file), name(&copy)).unwrap();
    }
    let read = copy.open().await.load(&key(), ReadRange::All).await.unwrap();
    assert_eq!(texts(&read.entries), ["a"]);
}

#[tokio::test]
async fn file_of_newer_version_is_refused_unchanged() {
    let file = File::new();
    file.open().await.close().await;
    file.tamper("PRAGMA journal_mode = delete; PRAGMA user_version = 99");
    let before = std::fs::read(file.path()).unwrap();
    let error = SqliteStore::open(file.path()).await.unwrap_err();
    assert!(matches!(error, OpenError::NewerSchema { found: 99, known: 1 }), "{error:?}");
    assert!(error.to_string().contains("update the program"), "{error}");
    assert_eq!(std::fs::read(file.path()).unwrap(), before);
}

#[tokio::test]
async fn file_that_is_no_store_is_refused_unchanged() {
    let other = File::new();
    other.tamper("CREATE TABLE notes (text)");
    let newer_other = File::new();
    newer_other.tamper("PRAGMA user_version = 7");
    // The tables of this mark changed before the first release.
    let unreleased = File::new();
    unreleased.tamper(
        "CREATE TABLE conversations (id); PRAGMA application_id = 1668117361; PRAGMA user_version = 1",
    );
    let text = File::new();
    std::fs::write(text.path(), "a text that is no database at all".repeat(40)).unwrap();
    for file in [other, newer_other, unreleased, text] {
        let before = std::fs::read(file.path()).unwrap();
        let error = SqliteStore::open(file.path()).await.unwrap_err();
        assert!(matches!(error, OpenError::NotAStore), "{error:?}");
        assert_eq!(std::fs::read(file.path()).unwrap(), before);
    }
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_left_alone() {
    let file = File::new();
    let store = file.open().await;
    for number in 0..40 {
        let text = format!("{number} ").repeat(500);
        store.append(&key(), Version(number), said(&format!("t{number}"), 0, &[&text])).await.unwrap();
    }
    store.close().await;
    let whole = std::fs::read(file.path()).unwrap();
    for page in 1..whole.len() / 4096 {
        let mut damaged = whole.clone();
        damaged[page * 4096..page * 4096 + 2048].fill(0);
        std::fs::write(file.path(), &damaged).unwrap();
        let opened = SqliteStore::open(file.path()).await;
        let Err(error) = opened else {
            // Of a long text the page has the middle, which only its entry's sum knows.
            let read = opened.unwrap().load(&key(), ReadRange::All).await.unwrap();
            assert!(
                read.entries.iter().any(|entry| matches!(entry.kind, EntryKind::Corrupt(_))),
                "page {page}"
            );
            continue;
        };
        assert!(matches!(error, OpenError::Damaged(_)), "page {page}: {error:?}");
        assert!(error.to_string().contains("backup"), "{error}");
        assert_eq!(std::fs::read(file.path()).unwrap(), damaged, "page {page}");
    }
}

#[tokio::test]
async fn unopenable_path_error_mentions_folder() {
    let file = File::new();
    for path in [file.path().join("deeper"), file.path().parent().unwrap().into()] {
        let error = SqliteStore::open(path).await.unwrap_err();
        assert!(matches!(error, OpenError::Unreachable(_)), "{error:?}");
        assert!(error.to_string().contains("folder"), "{error}");
    }
    assert!(matches!(SqliteStore::open("").await, Err(OpenError::Unreachable(_))));
}

#[test]
fn missing_runtime_is_error_without_panic() {
    let file = File::new();
    let opened = SqliteStore::open(file.path()).now_or_never().unwrap();
    assert!(matches!(opened, Err(OpenError::NoRuntime)), "{opened:?}");
    let store = SqliteStore::in_memory().unwrap();
    let read = store.load(&key(), ReadRange::All).now_or_never().unwrap();
    assert!(matches!(read, Err(StoreError::Unavailable { retryable: false, .. })), "{read:?}");
}

/// The first process creates the tables; the others find them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_open_a_new_file_at_once() {
    for _ in 0..20 {
        let file = File::new();
        let opened = futures::future::join_all((0..8).map(|_| {
            let path = file.path();
            tokio::task::spawn(SqliteStore::open(path))
        }));
        for (number, store) in (0..).zip(opened.await) {
            let (store, round) = (store.unwrap().unwrap(), u32::try_from(number).unwrap());
            let written = store.append(&key(), Version(number), said("t", round, &["x"])).await;
            assert_eq!(written.unwrap(), Version(number + 1));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_store_finishes_work_and_refuses_more() {
    for in_memory in [false, true] {
        let file = File::new();
        let store = if in_memory { SqliteStore::in_memory().unwrap() } else { file.open().await };
        let clone = store.clone();
        let key = key();
        let append = store.append(&key, Version::EMPTY, said("t", 0, &["a"]));
        let (appended, ()) = futures::future::join(append, clone.close()).await;
        assert_eq!(appended.unwrap(), Version(1));
        let refused = store.load(&key, ReadRange::All).await;
        assert!(matches!(refused, Err(StoreError::Unavailable { retryable: false, .. })), "{refused:?}");
        let ending = |ending: &str| std::fs::exists(format!("{}{ending}", file.path().display())).unwrap();
        assert!(!ending("-wal") && !ending("-shm"), "the last connection has tidied up");
        assert_eq!(ending(""), !in_memory);
    }
}

#[tokio::test]
async fn debug_shows_the_path_and_nothing_else() {
    let file = File::new();
    let store = file.open().await;
    store.append(&key(), Version::EMPTY, said("t", 0, &["secret"])).await.unwrap();
    let path = std::path::absolute(file.path()).unwrap();
    assert_eq!(format!("{store:?}"), format!("SqliteStore {{ path: Some({path:?}), .. }}"));
}

#[cfg(unix)]
#[tokio::test]
async fn new_files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    for opened in ["file", "link", "link to a link"] {
        let file = File::new();
        let [link, second] = ["link.sqlite", "second.sqlite"].map(|name| file.path().with_file_name(name));
        std::os::unix::fs::symlink(file.path().file_name().unwrap(), &link).unwrap();
        std::os::unix::fs::symlink("link.sqlite", &second).unwrap();
        let path = match opened {
            "file" => file.path(),
            "link" => link,
            _ => second,
        };
        let store = SqliteStore::open(path).await.unwrap();
        store.append(&key(), Version::EMPTY, said("t1", 1, &["secret"])).await.unwrap();
        for end in ["", "-wal", "-shm"] {
            let path = format!("{}{end}", file.path().display());
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{path}, opened as a {opened}");
        }
    }
}
