//! The store beside the one in memory: the same batches, the same answers.

use advisor_core::{FinishReason, Message, TurnEnd, TurnId};
use chat_memory_advisor::{
    Batch, BatchKey, ConversationStore, EntryId, EntryKind, Fence, InMemoryStore, NewEntry, StoreError,
    Version, View,
};

use crate::support::{Place, key, said};

/// Numbers that look random and follow from a seed (an LCG with Knuth's factor).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn turn(&mut self) -> TurnId {
        TurnId::new(["a", "b", "c"][usize::try_from(self.below(3)).unwrap()]).unwrap()
    }

    fn kind(&mut self) -> EntryKind {
        let unknown = r#"{"format": 9, "kind": "mood", "value": "\u0000"}"#;
        match self.below(6) {
            0 | 1 => EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop)),
            2 => EntryKind::Summary("short".into()),
            3 => EntryKind::Unknown(serde_json::from_str(unknown).unwrap()),
            _ => EntryKind::Message(Message::user("x\u{0}y")),
        }
    }

    /// A batch of up to four entries of any turns, under a key that may have been used.
    fn batch(&mut self) -> Batch {
        let entries = (0..self.below(5)).map(|_| NewEntry::new(self.turn(), self.kind())).collect();
        let round = u32::try_from(self.below(40)).unwrap();
        let mut batch = Batch::new(BatchKey::new(self.turn(), round, "\u{0}step"), entries);
        if self.below(4) == 0 {
            batch = batch.with_parent(EntryId::new(self.below(40)));
        }
        if self.below(4) == 0 { batch.with_fence(Fence::new(1 + self.below(3))) } else { batch }
    }
}

#[tokio::test]
async fn it_answers_as_the_store_in_memory_does() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    for seed in 1..=12 {
        let memory = InMemoryStore::new();
        let mut dice = Dice(seed);
        let key = key(&format!("seed-{seed}"));
        let mut earlier = Vec::new();
        for step in 0..60 {
            let current = memory.load(&key, View::LastEntries(0)).await.unwrap().version;
            let expected = if dice.below(6) == 0 { Version::new(dice.below(9)) } else { current };
            let again = usize::try_from(dice.below(64)).unwrap();
            let batch = earlier.get(again).cloned().unwrap_or_else(|| dice.batch());
            earlier.push(batch.clone());
            let one = memory.append(&key, expected, batch.clone()).await;
            let other = store.append(&key, expected, batch).await;
            assert_eq!(format!("{one:?}"), format!("{other:?}"), "seed {seed}, step {step}");
            if dice.below(40) == 0 {
                memory.delete(&key).await.unwrap();
                store.delete(&key).await.unwrap();
            }
            let count = usize::try_from(dice.below(9)).unwrap();
            let after = EntryId::new(dice.below(50));
            let one = memory.read(&key, after, count).await.unwrap();
            assert_eq!(one, store.read(&key, after, count).await.unwrap(), "seed {seed}, step {step}");
            let one = memory.branches(&key).await.unwrap();
            assert_eq!(one, store.branches(&key).await.unwrap(), "seed {seed}, step {step}");
            for view in [View::All, View::LastEntries(count), View::LastTurns(count), View::LastTurns(1)] {
                let one = memory.load(&key, view).await.unwrap();
                let other = store.load(&key, view).await.unwrap();
                assert_eq!(one, other, "seed {seed}, step {step}, {view:?}");
                let tip = EntryId::new(dice.below(50));
                let one = memory.load_branch(&key, tip, view).await;
                let other = store.load_branch(&key, tip, view).await;
                assert_eq!(
                    format!("{one:?}"),
                    format!("{other:?}"),
                    "seed {seed}, step {step}, {view:?}, {tip}"
                );
            }
        }
    }
    place.remove().await;
}

#[tokio::test]
async fn a_batch_is_known_again_by_what_it_says_and_whose_it_is() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    let batch = said("t", 0, &["a", "b"]);
    let version = store.append(&key("c"), Version::EMPTY, batch.clone()).await.unwrap();
    // As another version of this crate might have written it.
    place.execute("UPDATE {schema}.entries SET body = ' ' || body").await;
    assert_eq!(store.append(&key("c"), Version::EMPTY, batch.clone()).await.unwrap(), version);
    let mut other = batch;
    other.entries[1].turn = TurnId::new("another").unwrap();
    let refused = store.append(&key("c"), version, other).await;
    assert!(matches!(refused, Err(StoreError::KeyReused)), "{refused:?}");
    place.remove().await;
}

#[tokio::test]
async fn of_a_deleted_conversation_no_row_is_left() {
    let Some(place) = Place::new() else { return };
    let store = place.store(1).await;
    for name in ["kept", "deleted"] {
        store.append(&key(name), Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    }
    store.delete(&key("deleted")).await.unwrap();
    let client = place.client().await;
    for table in ["conversations", "entries", "turns", "batches"] {
        let count = place.sql(&format!("SELECT count(*) FROM {{schema}}.{table}"));
        let row = client.query_one(&count, &[]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), 1, "{table}");
    }
    place.remove().await;
}
