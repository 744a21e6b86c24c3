//! Tests of copies between stores: an exported conversation is equal after its import.

use advisor_chain::memory::store::{BatchKey, NewEntry, export, import};
use advisor_tests::prelude::*;
use advisor_tests::stores::all_stores;

type Store = Arc<dyn ConversationStore>;

/// A conversation of all sorts: many turns, one with a call, odd texts, unknown and damaged entries, branches.
async fn write(store: &Store, key: &ConversationKey) {
    let call = ToolCall::new("c1", "look", "{\"at\": 1}");
    let result = Message::tool(ToolResult::new(&call, vec!["seen".into()]));
    let unknown = r#"{"format":9,"kind":"mood","seq":5,"turn":7,"parent":"x","value":[1,-2.5,null]}"#;
    let odd = vec![
        EntryKind::Message(Message::user("a\u{0}\n\u{2028}\u{1F980}")),
        EntryKind::Message(Message::assistant_blocks(vec![call.into()])),
        EntryKind::Message(result),
        EntryKind::Unknown(serde_json::from_str(unknown).unwrap()),
        nested_as_deep_as_can_be(),
        EntryKind::Corrupt(b"half an en".into()),
        EntryKind::Corrupt(vec![0xFF, 0, 1]),
        EntryKind::TurnEnded(TurnEnd::Interrupted { partial: "par".into() }),
    ];
    let plain = vec![
        EntryKind::Message(Message::user("u")),
        EntryKind::Message(Message::assistant("a")),
        EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop)),
    ];
    let mut version = Version::EMPTY;
    for number in 0..120_u64 {
        let turn = TurnId::new(&format!("t{number}")).unwrap();
        let kinds = if number % 50 == 7 { odd.clone() } else { plain.clone() };
        let entries = kinds.into_iter().map(|kind| NewEntry::new(turn.clone(), kind)).collect();
        let mut batch = Batch::new(BatchKey::new(turn, 0, "all"), entries);
        if number % 40 == 39 {
            batch = batch.with_parent(EntryId(number - 9));
        }
        version = store.append(key, version, batch).await.unwrap();
    }
}

/// One level more is refused, as the suite of stores shows.
fn nested_as_deep_as_can_be() -> EntryKind {
    let value = (2..EntryKind::MAX_DEPTH).fold(json!([]), |inner, _| json!([inner]));
    let raw = json!({"format": 9, "kind": "deep", "value": value});
    EntryKind::Unknown(raw.as_object().cloned().unwrap())
}

async fn log_of(store: &Store, key: &ConversationKey) -> Vec<Entry> {
    store.read(key, EntryId::BEGINNING, usize::MAX).await.unwrap()
}

/// Each store into each other and into itself, under another name, twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversation_moves_between_all_store_pairs() {
    let stores = all_stores().await;
    let new_key = || ConversationKey::in_tenant(&String::from(TurnId::random()), "c").unwrap();
    for (from, source) in &stores {
        let key = new_key();
        write(source, &key).await;
        let (log, tips) = (log_of(source, &key).await, source.branches(&key).await.unwrap());
        assert_eq!(tips.len(), 4);
        let lines: String = export(Arc::clone(source), key.clone()).try_collect().await.unwrap();
        for (to, target) in &stores {
            let copy = new_key();
            for _ in 0..2 {
                let imported = import(target, lines.as_bytes(), Some(copy.clone())).await.unwrap();
                assert_eq!(imported.entries, log.len() as u64);
                assert_eq!(log_of(target, &copy).await, log, "from {from} to {to}");
            }
            assert_eq!(target.branches(&copy).await.unwrap(), tips, "from {from} to {to}");
            for tip in &tips {
                for range in [ReadRange::All, ReadRange::LastTurns(9), ReadRange::LastEntries(40)] {
                    let (one, other) = (
                        source.load_branch(&key, *tip, range).await.unwrap(),
                        target.load_branch(&copy, *tip, range).await.unwrap(),
                    );
                    assert_eq!(one, other, "from {from} to {to}, {range:?} of the branch to {tip}");
                }
            }
            let again: String = export(Arc::clone(target), copy.clone()).try_collect().await.unwrap();
            assert!(again.lines().skip(1).eq(lines.lines().skip(1)), "from {from} to {to}");
            target.delete(&copy).await.unwrap();
        }
        source.delete(&key).await.unwrap();
    }
}

/// An export of the first version: turns with calls and their starts, a branch, entries of all kinds.
const OF_VERSION_1: &str = include_str!("fixtures/conversation-1.jsonl");

#[tokio::test]
async fn first_version_export_round_trips_everywhere() {
    for (name, store) in all_stores().await {
        let key = ConversationKey::in_tenant(&String::from(TurnId::random()), "c").unwrap();
        let imported = import(&store, OF_VERSION_1.as_bytes(), Some(key.clone())).await.unwrap();
        assert_eq!(imported.entries, 22, "{name}");
        let read = log_of(&store, &key).await;
        let corrupt = read.iter().filter(|entry| matches!(entry.kind, EntryKind::Corrupt(_))).count();
        let unknown = read.iter().filter(|entry| matches!(entry.kind, EntryKind::Unknown(_))).count();
        assert_eq!((corrupt, unknown), (2, 1), "{name}");
        let lines: String = export(Arc::clone(&store), key.clone()).try_collect().await.unwrap();
        assert!(lines.lines().skip(1).eq(OF_VERSION_1.lines().skip(1)), "{name}: {lines}");
        store.delete(&key).await.unwrap();
    }
}
