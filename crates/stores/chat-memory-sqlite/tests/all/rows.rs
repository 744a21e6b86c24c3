//! Rows: damaged ones, odd texts, sizes, tokens.

use std::sync::Arc;

use advisor_conformance::crash::next_turns_are_valid;
use advisor_conformance::store::{
    Damage, a_damaged_entry_harms_no_other, batch_is_recognized_by_its_content,
};
use advisor_core::{ConversationKey, FinishReason, TurnEnd, TurnId};
use chat_memory_sqlite::SqliteStore;
use conversation_store::{
    ConversationStore, EntryId, EntryKind, FencingToken, NewEntry, ReadRange, StoreError, Version,
};

use crate::support::{File, key, said, texts};

/// Three turns of one message each, of which each has ended: entries 1 to 6.
async fn three_turns(store: &SqliteStore) {
    for (round, turn) in (0..).zip(["one", "two", "three"]) {
        let mut batch = said(turn, round, &[turn]);
        let end = EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop));
        batch.entries.push(NewEntry::new(TurnId::new(turn).unwrap(), end));
        store.append(&key(), Version(u64::from(round) * 2), batch).await.unwrap();
    }
}

/// Damages an entry around the store.
async fn damage(file: &File, key: &ConversationKey, seq: u64, damage: Damage) {
    let done = match damage {
        Damage::Body(body) => format!("UPDATE entries SET entry = '{body}'"),
        Damage::Turn => "UPDATE entries SET turn = 'no turn'".into(),
        _ => "DELETE FROM entries".into(),
    };
    let of = format!("(SELECT id FROM conversations WHERE conversation = '{}')", key.conversation());
    file.tamper(&format!("{done} WHERE conversation = {of} AND seq = {seq}"));
}

#[tokio::test]
async fn law_m6_a_damaged_entry_harms_no_other() {
    let file = File::new();
    let store = Arc::new(file.open().await);
    let damage = async |key: &ConversationKey, seq, how| damage(&file, key, seq, how).await;
    a_damaged_entry_harms_no_other(store, damage, next_turns_are_valid).await;
}

#[tokio::test]
async fn batch_stored_in_other_json_form_is_recognized() {
    let file = File::new();
    let store = Arc::new(file.open().await);
    batch_is_recognized_by_its_content(store, async |key, seq, how| damage(&file, key, seq, how).await).await;
}

/// Bytes that are not text are returned unchanged, and the conversation continues.
#[tokio::test]
async fn non_text_row_is_returned_as_stored() {
    let file = File::new();
    let store = file.open().await;
    three_turns(&store).await;
    for (broken, raw) in [
        ("entry = CAST(x'FF00FF' AS TEXT)", Some(vec![0xFF, 0, 0xFF])),
        ("turn = CAST(x'FF' AS TEXT)", Some(vec![0xFF, 0, 0xFF])),
    ] {
        file.tamper(&format!("UPDATE entries SET {broken} WHERE seq = 6"));
        let read = store.load(&key(), ReadRange::LastTurns(1)).await.unwrap();
        assert_eq!((read.version, read.open_turn), (Version(6), None));
        let last = read.entries.last().unwrap();
        assert_eq!(raw.map(EntryKind::Corrupt).as_ref(), Some(&last.kind), "{broken}");
    }
    store.append(&key(), Version(6), said("four", 0, &["four"])).await.unwrap();
    assert_eq!(texts(&store.load(&key(), ReadRange::LastTurns(1)).await.unwrap().entries), ["four"]);
}

#[tokio::test]
async fn head_version_beyond_stored_entries_is_refused() {
    let file = File::new();
    let store = file.open().await;
    three_turns(&store).await;
    file.tamper("UPDATE conversations SET version = 1000000000000");
    let refused = store.load(&key(), ReadRange::All).await;
    assert!(matches!(refused, Err(StoreError::Corrupt { seq: Some(7), .. })), "{refused:?}");
}

#[tokio::test]
async fn a_batch_beyond_the_bound_is_refused_whole() {
    let store = SqliteStore::in_memory().unwrap();
    let half = "x".repeat(32 << 20);
    let refused = store.append(&key(), Version::EMPTY, said("t", 0, &[&half, &half])).await;
    assert!(matches!(refused, Err(StoreError::TooLarge)), "{refused:?}");
    assert_eq!(store.load(&key(), ReadRange::All).await.unwrap().version, Version::EMPTY);
    store.append(&key(), Version::EMPTY, said("t", 0, &[&half])).await.unwrap();
}

#[tokio::test]
async fn fences_and_versions_compare_as_numbers() {
    let store = SqliteStore::in_memory().unwrap();
    let batch = |round, token| said("t", round, &["x"]).with_token(FencingToken(token));
    let version = store.append(&key(), Version::EMPTY, batch(0, u64::MAX - 1)).await.unwrap();
    for older in [0, 1, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX - 2] {
        let refused = store.append(&key(), version, batch(1, older)).await;
        assert!(matches!(refused, Err(StoreError::Fenced)), "{refused:?}");
    }
    let version = store.append(&key(), version, batch(1, u64::MAX)).await.unwrap();
    let conflict = store.append(&key(), Version(u64::MAX), said("t", 2, &["x"])).await;
    assert!(matches!(conflict, Err(StoreError::Conflict { current }) if current == version), "{conflict:?}");
}

/// Another program has written to the file, and its row could pass for an entry.
#[tokio::test]
async fn row_that_differs_from_written_row_is_damaged() {
    for other in [
        "entry = replace(entry, 'three', 'drei')",
        "turn = 'two'",
        "turn_from = 4",
        "open = 1 - open",
        "sum = sum + 1",
        "(turn, entry, turn_from, open, sum) =
         (SELECT turn, entry, turn_from, open, sum FROM entries AS one WHERE one.seq = 3)",
    ] {
        let file = File::new();
        let store = file.open().await;
        three_turns(&store).await;
        file.tamper(&format!("UPDATE entries SET {other} WHERE seq = 5"));
        let read = store.load(&key(), ReadRange::All).await.unwrap();
        let damaged = read.entries.iter().filter(|entry| matches!(entry.kind, EntryKind::Corrupt(_)));
        assert_eq!(damaged.map(|entry| entry.seq).collect::<Vec<_>>(), [5], "{other}");
        assert_eq!(read.entries.len(), 6);
    }
}

/// An older page of the conversations has come back. Every operation reports it, and the conversation can be
/// deleted.
#[tokio::test]
async fn conversation_with_entries_beyond_its_version_is_damaged() {
    let file = File::new();
    let store = file.open().await;
    three_turns(&store).await;
    file.tamper("UPDATE conversations SET version = 4");
    let refused = store.load(&key(), ReadRange::LastTurns(1)).await.map(drop);
    assert!(matches!(refused, Err(StoreError::Corrupt { seq: Some(5), .. })), "{refused:?}");
    let refused = store.read(&key(), EntryId::BEGINNING, 2).await.map(drop);
    assert!(matches!(refused, Err(StoreError::Corrupt { seq: Some(5), .. })), "{refused:?}");
    for expected in [4, 6] {
        let refused = store.append(&key(), Version(expected), said("four", 0, &["four"])).await;
        assert!(matches!(refused, Err(StoreError::Corrupt { seq: Some(5), .. })), "{refused:?}");
    }
    store.delete(&key()).await.unwrap();
    store.append(&key(), Version::EMPTY, said("four", 0, &["four"])).await.unwrap();
}
