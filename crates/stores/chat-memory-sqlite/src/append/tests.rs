//! Tests of `append`.

use advisor_core::{Message, TurnId};
use conversation_store::{EntryKind, NewEntry, ReadRange};

use super::*;
use crate::file;
use crate::load::load;

fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

fn said(round: u32, text: &str) -> Batch {
    let turn = TurnId::new("t").unwrap();
    let entry = NewEntry::new(turn.clone(), EntryKind::Message(Message::user(text)));
    Batch::new(BatchKey::new(turn, round, "said"), vec![entry.clone(), entry])
}

fn append(
    connection: &mut Connection,
    key: &ConversationKey,
    expected: Version,
    batch: &Batch,
) -> Result<Version, StoreError> {
    super::append(connection, key, expected, batch).map_err(StoreError::from)
}

fn version(connection: &mut Connection) -> Version {
    load(connection, &key(), None, ReadRange::All).unwrap().version
}

#[test]
fn a_full_disk_leaves_no_trace_and_passes() {
    let mut connection = file::in_memory().unwrap();
    let version_1 = append(&mut connection, &key(), Version::EMPTY, &said(0, "a")).unwrap();
    let pages: u32 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    connection.pragma_update_and_check(None, "max_page_count", pages + 3, |_| Ok(())).unwrap();
    let large = said(1, &"x".repeat(10_000));
    let refused = append(&mut connection, &key(), version_1, &large);
    assert!(matches!(refused, Err(StoreError::Unavailable { retryable: true, .. })), "{refused:?}");
    assert_eq!(version(&mut connection), version_1);
    connection.pragma_update_and_check(None, "max_page_count", 9999, |_| Ok(())).unwrap();
    append(&mut connection, &key(), version_1, &large).unwrap();
}

#[test]
fn locked_file_is_temporarily_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let (mut connection, other) = (file::writer(&path).unwrap(), file::writer(&path).unwrap());
    connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = append(&mut connection, &key(), Version::EMPTY, &said(0, "a"));
    assert!(matches!(refused, Err(StoreError::Unavailable { retryable: true, .. })), "{refused:?}");
    other.execute_batch("ROLLBACK").unwrap();
    append(&mut connection, &key(), Version::EMPTY, &said(0, "a")).unwrap();
}

/// A caller that gets this error retries under the same key.
#[test]
fn failed_commit_outcome_is_resolved_by_same_key() {
    let mut connection = file::in_memory().unwrap();
    connection.commit_hook(Some(|| true)).unwrap();
    let unknown = append(&mut connection, &key(), Version::EMPTY, &said(0, "a"));
    assert!(matches!(unknown, Err(StoreError::OutcomeUnknown { .. })), "{unknown:?}");
    connection.commit_hook(None::<fn() -> bool>).unwrap();
    for _ in 0..2 {
        let version = append(&mut connection, &key(), Version::EMPTY, &said(0, "a")).unwrap();
        assert_eq!(version, Version(2));
    }
    assert_eq!(version(&mut connection), Version(2));
}

/// The triggers change rows behind the append, as a damaged page would.
#[test]
fn append_that_reads_back_differently_is_not_acknowledged() {
    for otherwise in [
        "UPDATE entries SET entry = replace(new.entry, 'a', 'b') WHERE seq = new.seq",
        "UPDATE entries SET turn = 'u' WHERE seq = new.seq",
        "UPDATE entries SET open = 1 - new.open WHERE seq = new.seq",
        "UPDATE entries SET conversation = 77 WHERE seq = new.seq",
        "DELETE FROM entries WHERE seq = new.seq",
        "DELETE FROM entries WHERE seq = 2",
        "UPDATE entries SET seq = new.seq + 10 WHERE seq = new.seq",
    ] {
        let mut connection = file::in_memory().unwrap();
        let trigger = format!("CREATE TRIGGER otherwise AFTER INSERT ON entries BEGIN {otherwise}; END");
        connection.execute_batch(&trigger).unwrap();
        let refused = append(&mut connection, &key(), Version::EMPTY, &said(0, "a"));
        assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{otherwise}: {refused:?}");
        assert_eq!(version(&mut connection), Version::EMPTY, "{otherwise}");
        connection.execute_batch("DROP TRIGGER otherwise").unwrap();
        append(&mut connection, &key(), Version::EMPTY, &said(0, "a")).unwrap();
    }
    let mut connection = file::in_memory().unwrap();
    let backwards = "CREATE TRIGGER backwards AFTER UPDATE OF version ON conversations WHEN new.version > 0
                     BEGIN UPDATE conversations SET version = 1; END";
    connection.execute_batch(backwards).unwrap();
    let refused = append(&mut connection, &key(), Version::EMPTY, &said(0, "a"));
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
}
