//! Rows: broken ones, odd texts, sizes, fences.

use advisor_core::{ConversationKey, FinishReason, Message, TurnEnd, TurnId};
use chat_memory_advisor::{
    Batch, BatchKey, ConversationStore, EntryId, EntryKind, Fence, NewEntry, Page, StoreError, Version, View,
};
use chat_memory_sqlite::SqliteStore;

use crate::support::{File, key, said, texts};

/// Three turns of one message each, of which each has ended: entries 1 to 6.
async fn three_turns(store: &SqliteStore) {
    for (round, turn) in (0..).zip(["one", "two", "three"]) {
        let mut batch = said(turn, round, &[turn]);
        let end = EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop));
        batch.entries.push(NewEntry::new(TurnId::new(turn).unwrap(), end));
        store.append(&key(), Version::new(u64::from(round) * 2), batch).await.unwrap();
    }
}

#[tokio::test]
async fn a_broken_row_is_reported_with_its_place_and_hides_nothing_else() {
    for broken in [
        "entry = '{\"format\":1,\"kind\":\"message\",\"value\":\"secret\"}'",
        "entry = '{\"format\":1,\"kind\":\"message\",'",
        "entry = '\"secret\"'",
        "entry = ''",
        "entry = CAST(x'FF00FF' AS TEXT)",
        "turn = 'secret secret'",
        "turn = CAST(x'FF' AS TEXT)",
    ] {
        let file = File::new();
        let store = file.open().await;
        three_turns(&store).await;
        file.tamper(&format!("UPDATE entries SET {broken} WHERE seq = 3"));
        for view in [View::All, View::LastEntries(4), View::LastTurns(2)] {
            let error = store.load(&key(), view).await.unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { seq: 3, .. }), "{error:?} with {broken}");
            assert!(!format!("{error:?}").contains("secret"), "{error:?} quotes the conversation");
        }
        for view in [View::LastEntries(3), View::LastTurns(1), View::LastEntries(0)] {
            let read = store.load(&key(), view).await.unwrap();
            assert_eq!(read.version, Version::new(6), "{view:?} with {broken}");
        }
        // The conversation goes on, and without the row all the others are there.
        store.append(&key(), Version::new(6), said("four", 0, &["four"])).await.unwrap();
        file.tamper("DELETE FROM entries WHERE seq = 3");
        let read = store.load(&key(), View::All).await.unwrap();
        assert_eq!(texts(&read.entries), ["one", "three", "four"]);
    }
}

#[tokio::test]
async fn a_broken_last_row_does_not_keep_the_conversation_from_growing() {
    let file = File::new();
    let store = file.open().await;
    three_turns(&store).await;
    file.tamper("UPDATE entries SET turn = CAST(x'FF' AS TEXT), entry = 'x' WHERE seq = 6");
    assert!(matches!(store.load(&key(), View::All).await, Err(StoreError::Corrupt { seq: 6, .. })));
    store.append(&key(), Version::new(6), said("four", 0, &["four"])).await.unwrap();
    assert_eq!(texts(&store.load(&key(), View::LastTurns(1)).await.unwrap().entries), ["four"]);
}

/// A batch that cannot be compared with what is stored is neither taken for it nor for another one.
#[tokio::test]
async fn a_repeated_batch_over_a_broken_row_is_told_so() {
    let file = File::new();
    let store = file.open().await;
    let batch = said("t", 0, &["a", "b"]);
    store.append(&key(), Version::EMPTY, batch.clone()).await.unwrap();
    file.tamper("UPDATE entries SET entry = '{' WHERE seq = 2");
    let again = store.append(&key(), Version::EMPTY, batch).await;
    assert!(matches!(again, Err(StoreError::Corrupt { seq: 2, .. })), "{again:?}");
}

/// The same entry in other JSON, as another version of this program may have written it, is the same.
#[tokio::test]
async fn a_repeated_batch_is_compared_by_what_it_says() {
    let file = File::new();
    let store = file.open().await;
    let turn = TurnId::new("t").unwrap();
    let summary = NewEntry::new(turn.clone(), EntryKind::Summary("short".into()));
    let batch = Batch::new(BatchKey::new(turn, 0, "x"), vec![summary]);
    let version = store.append(&key(), Version::EMPTY, batch.clone()).await.unwrap();
    file.tamper(r#"UPDATE entries SET entry = '{ "value": "short", "kind": "summary", "format": 1 }'"#);
    assert_eq!(store.append(&key(), Version::EMPTY, batch).await.unwrap(), version);
}

#[tokio::test]
async fn steps_and_tenants_are_any_text() {
    let store = SqliteStore::in_memory().unwrap();
    let mut version = Version::EMPTY;
    let steps = ["", "\0", "a\0b", "a\0c", "'; DROP TABLE entries; --", "\u{1F980}", "é", "e\u{301}", "?1"];
    let batch = |step: &str| {
        let turn = TurnId::new("t").unwrap();
        let said = NewEntry::new(turn.clone(), EntryKind::Message(Message::user(step)));
        Batch::new(BatchKey::new(turn, 0, step), vec![said])
    };
    for step in steps {
        version = store.append(&key(), version, batch(step)).await.unwrap();
    }
    for (step, led_to) in steps.iter().zip(1..) {
        assert_eq!(store.append(&key(), version, batch(step)).await.unwrap(), Version::new(led_to));
    }
    assert_eq!(texts(&store.load(&key(), View::All).await.unwrap().entries), steps);
    for tenant in ["", "\0", "default\0", "'", "%"] {
        assert_eq!(store.list(&Page::first(tenant, 9)).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_batch_beyond_the_bound_is_refused_whole() {
    let store = SqliteStore::in_memory().unwrap().with_largest_batch(200);
    let half = "x".repeat(80);
    let refused = store.append(&key(), Version::EMPTY, said("t", 0, &[&half, &half])).await;
    assert!(matches!(refused, Err(StoreError::TooLarge)), "{refused:?}");
    assert_eq!(store.load(&key(), View::All).await.unwrap().version, Version::EMPTY);
    store.append(&key(), Version::EMPTY, said("t", 0, &[&half])).await.unwrap();
}

#[tokio::test]
async fn what_is_not_supported_is_said() {
    let store = SqliteStore::in_memory().unwrap();
    let branch = said("t", 0, &["a"]).with_parent(EntryId::new(1));
    let refused = store.append(&key(), Version::EMPTY, branch).await;
    assert!(matches!(refused, Err(StoreError::Unsupported { .. })), "{refused:?}");
}

#[tokio::test]
async fn fences_and_versions_of_any_size_are_compared_as_numbers() {
    let store = SqliteStore::in_memory().unwrap();
    let batch = |round, fence| said("t", round, &["x"]).with_fence(Fence::new(fence));
    let version = store.append(&key(), Version::EMPTY, batch(0, u64::MAX - 1)).await.unwrap();
    for older in [0, 1, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX - 2] {
        let refused = store.append(&key(), version, batch(1, older)).await;
        assert!(matches!(refused, Err(StoreError::Fenced)), "{refused:?}");
    }
    let version = store.append(&key(), version, batch(1, u64::MAX)).await.unwrap();
    let conflict = store.append(&key(), Version::new(u64::MAX), said("t", 2, &["x"])).await;
    assert!(matches!(conflict, Err(StoreError::Conflict { current }) if current == version), "{conflict:?}");
}

#[tokio::test]
async fn a_page_may_begin_after_another_tenants_conversation() {
    let store = SqliteStore::in_memory().unwrap();
    let in_tenant = |tenant| ConversationKey::in_tenant(tenant, "m").unwrap();
    store.append(&in_tenant("m"), Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
    for (after, listed) in [("a", true), ("m", false), ("z", false)] {
        let page = Page::first("m", usize::MAX).after(in_tenant(after));
        assert_eq!(!store.list(&page).await.unwrap().is_empty(), listed, "after a key of {after}");
    }
    assert_eq!(store.list(&Page::first("m", 0)).await.unwrap(), []);
}
