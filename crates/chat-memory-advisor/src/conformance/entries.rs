//! What is written is read again, as it was and in its order.

use advisor_core::{Block, CallKey, CallStart, FinishReason, Message, ToolCall, ToolResult, TurnEnd, TurnId};
use serde_json::{Map, Value};

use super::{Store, new_key, said, texts};
use crate::{Batch, BatchKey, Entry, EntryKind, NewEntry, Version, View};

/// The entries of a batch keep their order, and so do batches; each entry has the next number.
pub async fn append_keeps_order(store: Store) {
    let key = new_key();
    let version = store.append(&key, Version::EMPTY, said("t", 0, &["a", "b"])).await.unwrap();
    store.append(&key, version, said("t", 1, &["c"])).await.unwrap();
    let read = store.load(&key, View::All).await.unwrap();
    assert_eq!(texts(&read.entries), ["a", "b", "c"]);
    assert!(read.entries.iter().map(|entry| entry.seq).eq(1..=3), "sequence numbers: {read:?}");
    assert_eq!(read.version, Version::new(3));
}

/// Messages of every role, starts of calls and ends of every kind are read as they were written, each in its turn.
pub async fn every_kind_of_message_survives(store: Store) {
    let call = ToolCall::new("c1", "look", "{\"at\": [1, 2.5, null]}");
    let kinds = vec![
        EntryKind::Message(Message::user("u")),
        EntryKind::Message(Message::assistant_blocks(vec![Block::text("t"), Block::from(call.clone())])),
        EntryKind::Message(Message::tool(ToolResult::error(&call, "no"))),
        EntryKind::TurnEnded(TurnEnd::Interrupted { partial: "par".into() }),
        EntryKind::CallStarted(CallStart::new(CallKey::new(TurnId::new("t").unwrap(), 1, 0), "c1")),
        EntryKind::Summary("short".into()),
        EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Other("odd".into()))),
        EntryKind::TurnEnded(TurnEnd::RolledBack),
    ];
    assert_survive(&store, kinds).await;
}

/// Entries of kinds and formats that this version does not know are given back as they came.
pub async fn unknown_kinds_survive(store: Store) {
    let raw = |json: &str| EntryKind::Unknown(serde_json::from_str::<Map<String, Value>>(json).unwrap());
    let kinds = vec![
        raw(r#"{"format": 1, "kind": "mood", "value": {"deep": [1, -2, 0.5, "x", null, true]}}"#),
        raw(r#"{"format": 99, "kind": "message", "value": 7, "more": "fields"}"#),
    ];
    assert_survive(&store, kinds).await;
}

/// Text survives whatever it is made of, NUL, quotes and all planes of Unicode included.
pub async fn texts_of_all_sorts_survive(store: Store) {
    let texts =
        ["", "\u{0}", "a\u{0}b", "'; drop table entries; --", "\"\\\u{8}\u{1F}", "\r\n\t", "\u{FEFF}"];
    let more = ["\u{1F980}\u{200D}\u{1F3FD}", "\u{202E}abc", "e\u{301}", "\u{10FFFF}", "%s {} $1 ?"];
    let message = |text: &str| EntryKind::Message(Message::user(text));
    assert_survive(&store, texts.into_iter().chain(more).map(message).collect()).await;
}

/// An entry of one mebibyte is kept.
pub async fn a_large_entry_survives(store: Store) {
    let large: String = ('a'..='z').cycle().take(1 << 20).collect();
    assert_survive(&store, vec![EntryKind::Message(Message::user(large))]).await;
}

async fn assert_survive(store: &Store, kinds: Vec<EntryKind>) {
    let key = new_key();
    let turn = TurnId::new("t").unwrap();
    let entries = kinds.iter().map(|kind| NewEntry::new(turn.clone(), kind.clone())).collect();
    store
        .append(&key, Version::EMPTY, Batch::new(BatchKey::new(turn.clone(), 0, "x"), entries))
        .await
        .unwrap();
    let read = store.load(&key, View::All).await.unwrap().entries;
    let expected = (1..).zip(kinds).map(|(seq, kind)| Entry::new(seq, turn.clone(), kind));
    assert!(read.iter().cloned().eq(expected), "read: {read:?}");
}
