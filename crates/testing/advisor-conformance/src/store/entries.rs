//! Clauses about entries: they are read as written and in order.

use advisor_core::{
    Block, BlockContent, CallKey, CallStart, FinishReason, Message, Opaque, ProviderData, ToolCall,
    ToolResult, TurnEnd, TurnId,
};
use serde_json::{Map, Value, json};

use super::{Store, new_key, said, texts};
use conversation_store::{
    Batch, BatchKey, Entry, EntryId, EntryKind, NewEntry, ReadRange, StoreError, Version,
};

/// Messages of every role, starts of calls, ends of every kind, and entries of unknown kinds and formats are read as
/// written.
pub async fn every_kind_of_message_survives(store: Store) {
    let raw = |json: &str| EntryKind::Unknown(serde_json::from_str::<Map<String, Value>>(json).unwrap());
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
        raw(r#"{"format": 1, "kind": "mood", "value": {"deep": [1, -2, 0.5, "x", null, true]}}"#),
        raw(r#"{"format": 99, "kind": "message", "value": 7, "more": "fields"}"#),
    ];
    assert_survive(&store, kinds).await;
}

/// The round of a message is read as written; a message without a round has none. No other kind has one.
pub async fn rounds_survive(store: Store) {
    let (key, turn) = (new_key(), TurnId::new("t").unwrap());
    let unknown = json!({"format": 9, "kind": "mood", "round": 7});
    let said = || EntryKind::Message(Message::user("u"));
    let kinds = [said(), said(), EntryKind::Unknown(unknown.as_object().cloned().unwrap()), said(), said()];
    let rounds = [None, Some(0), Some(3), Some(1), Some(u32::MAX)];
    let new = |(kind, round): (&EntryKind, Option<u32>)| {
        let mut new = NewEntry::new(turn.clone(), kind.clone());
        new.round = round;
        new
    };
    let entries = kinds.iter().zip(rounds).map(new);
    let batch = Batch::new(BatchKey::new(turn.clone(), 0, "x"), entries.collect());
    let version = store.append(&key, Version::EMPTY, batch.clone()).await.unwrap();
    let expected = [None, Some(0), None, Some(1), Some(u32::MAX)];
    let of = |entries: &[Entry]| entries.iter().map(|entry| entry.round).collect::<Vec<_>>();
    let read = store.load(&key, ReadRange::All).await.unwrap();
    assert_eq!(of(&read.entries), expected);
    assert_eq!(of(&read.open_turn.unwrap()), expected);
    assert_eq!(of(&store.read(&key, EntryId::BEGINNING, 9).await.unwrap()), expected);
    assert!(read.entries.iter().map(|entry| &entry.kind).eq(&kinds), "{read:?}", read = read.entries);
    // A retry need not give the rounds, since an older version does not know them.
    let mut without = batch;
    without.entries = without.entries.into_iter().map(|new| NewEntry::new(new.turn, new.kind)).collect();
    assert_eq!(store.append(&key, Version::EMPTY, without).await.unwrap(), version);
}

/// Any text survives, including NUL, quotes, all planes of Unicode and a text of a mebibyte.
pub async fn texts_of_all_sorts_survive(store: Store) {
    let texts =
        ["", "\u{0}", "a\u{0}b", "'; drop table entries; --", "\"\\\u{8}\u{1F}", "\r\n\t", "\u{FEFF}"];
    let more = ["\u{1F980}\u{200D}\u{1F3FD}", "\u{202E}abc", "e\u{301}", "\u{10FFFF}", "%s {} $1 ?"];
    let message = |text: &str| EntryKind::Message(Message::user(text));
    let large: String = ('a'..='z').cycle().take(1 << 20).collect();
    assert_survive(&store, texts.into_iter().chain(more).chain([&*large]).map(message).collect()).await;
}

/// Any JSON survives: numbers at the limits of their types, empty and unusual names, empty lists. JSON inside a
/// text may be nested to any depth.
pub async fn json_of_all_sorts_survives(store: Store) {
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let values = [
        json!([u64::MAX, i64::MIN, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, -0.0, 0.1 + 0.2, 1e16]),
        json!({"": {"": [[], {}, null]}, "\u{0}": "\u{0}", "\u{1F980}": "\u{10FFFF}", "$": 1, "$serde_json": 2}),
        json!({"format": 9, "kind": "message", "seq": 1, "turn": "t", "entry": {}, "role": "user"}),
        json!(deep),
    ];
    let kinds = values.iter().flat_map(|value| IN_ALL_PLACES.map(|place| place(value.clone())));
    let call = ToolCall::new("c".repeat(10_000), "look", deep.as_str());
    let answer = EntryKind::Message(Message::assistant_blocks(vec![call.into()]));
    assert_survive(&store, kinds.chain([answer]).collect()).await;
}

/// Any entry that holds JSON survives if it is nested up to [`EntryKind::MAX_DEPTH`]. A deeper one is refused with
/// its whole batch, before anything is acknowledged.
pub async fn too_deep_entry_is_refused(store: Store) {
    for place in IN_ALL_PLACES {
        let around = depth_of(&place(json!([]))) - 1;
        let deepest = EntryKind::MAX_DEPTH - around;
        for depth in [1, deepest - 1, deepest] {
            assert_survive(&store, vec![place(nested(depth)), place(nested(1))]).await;
        }
        for depth in [deepest + 1, deepest + 2, deepest + 9] {
            let limit = EntryKind::MAX_DEPTH;
            let refused = refused(&store, place(nested(depth))).await;
            assert!(
                matches!(refused, StoreError::TooDeep { limit: told, .. } if told == limit),
                "{depth} levels in {around}: {refused:?}"
            );
        }
    }
}

/// An entry that would not be read back, or be read as another value, is refused before it is acknowledged.
pub async fn unreadable_entry_is_refused(store: Store) {
    let reserved = json!([{"a": 1, "$serde_json::private::RawValue": "[1]"}]);
    let mut kinds: Vec<_> = IN_ALL_PLACES.iter().map(|place| place(reserved.clone())).collect();
    for raw in [
        json!({}),
        json!({"kind": "mood", "value": 1}),
        json!({"format": 9, "value": 1}),
        json!({"format": -1, "kind": "mood"}),
        json!({"format": 1, "kind": "message", "value": "secret"}),
    ] {
        kinds.push(EntryKind::Unknown(serde_json::from_value(raw).unwrap()));
    }
    for kind in kinds {
        let refused = refused(&store, kind).await;
        assert!(matches!(refused, StoreError::Unreadable { .. }), "{refused:?}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
}

/// The kinds of entries that hold arbitrary JSON from outside.
const IN_ALL_PLACES: [fn(Value) -> EntryKind; 5] = [
    |value| EntryKind::Message(Message::user_parts(vec!["look".into(), value.into()])),
    |value| {
        let call = ToolCall::new("c1", "look", "{}");
        EntryKind::Message(Message::tool(ToolResult::new(&call, vec![value.into()])))
    },
    |value| {
        let opaque = BlockContent::Opaque(Opaque::new("wire", "search", value));
        EntryKind::Message(Message::assistant_blocks(vec![Block::new(opaque)]))
    },
    |value| {
        let data = vec![ProviderData::new("wire", value)];
        let block = Block::with_data(BlockContent::Reasoning("hm".into()), data);
        EntryKind::Message(Message::assistant_blocks(vec![block]))
    },
    |value| {
        let raw = json!({"format": 9, "kind": "mood", "value": value});
        EntryKind::Unknown(raw.as_object().cloned().unwrap())
    },
];

/// Returns an empty array nested in alternating arrays and objects, `depth` levels in all.
fn nested(depth: usize) -> Value {
    (1..depth)
        .fold(json!([]), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"a": inner}) })
}

/// Returns the depth of an entry's JSON form. Its texts must not contain brackets.
fn depth_of(kind: &EntryKind) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in serde_json::to_string(kind).unwrap().bytes() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Appends an entry between two valid ones and returns the error. Nothing may be written, and the conversation
/// remains usable.
async fn refused(store: &Store, kind: EntryKind) -> StoreError {
    let (key, turn) = (new_key(), TurnId::new("t").unwrap());
    let version = store.append(&key, Version::EMPTY, said("t", 0, &["before"])).await.unwrap();
    let good = || NewEntry::new(turn.clone(), EntryKind::Message(Message::user("good")));
    let entries = vec![good(), NewEntry::new(turn.clone(), kind), good()];
    let batch = Batch::new(BatchKey::new(turn.clone(), 1, "said"), entries);
    let refused = store.append(&key, version, batch).await;
    // The refused batch's key stays free, too.
    let next = store.append(&key, version, said("t", 1, &["after"])).await;
    assert_eq!(next.unwrap(), Version(2), "refused: {refused:?}");
    assert_eq!(texts(&store.load(&key, ReadRange::All).await.unwrap().entries), ["before", "after"]);
    refused.unwrap_err()
}

async fn assert_survive(store: &Store, kinds: Vec<EntryKind>) {
    let key = new_key();
    let turn = TurnId::new("t").unwrap();
    let entries = kinds.iter().map(|kind| NewEntry::new(turn.clone(), kind.clone())).collect();
    store
        .append(&key, Version::EMPTY, Batch::new(BatchKey::new(turn.clone(), 0, "x"), entries))
        .await
        .unwrap();
    let read = store.load(&key, ReadRange::All).await.unwrap().entries;
    let expected = (1..).zip(kinds).map(|(seq, kind)| Entry::new(seq, turn.clone(), kind));
    assert!(read.iter().cloned().eq(expected), "read: {read:?}");
}
