//! Compares a store with the one in memory: the same batches must give the same answers.

use advisor_core::{ConversationKey, FinishReason, Message, TurnEnd, TurnId};

use super::{Store, new_key};
use conversation_store::{
    Batch, BatchKey, ConversationStore, EntryId, EntryKind, FencingToken, InMemoryStore, NewEntry, ReadRange,
    Version,
};

/// Appends, deletions and reads give the same results as [`InMemoryStore`]. This includes wrong versions, used
/// keys, old fencing tokens and parents that do not exist.
pub async fn it_answers_as_the_store_in_memory_does(store: Store) {
    for seed in 1..=12 {
        let (memory, key, mut dice) = (InMemoryStore::new(), new_key(), Dice(seed));
        let mut earlier = Vec::new();
        for step in 0..60 {
            let at = format!("seed {seed}, step {step}");
            let current = memory.load(&key, ReadRange::LastEntries(0)).await.unwrap().version;
            let expected = if dice.below(6) == 0 { Version(dice.below(9)) } else { current };
            let batch = earlier.get(dice.count(64)).cloned().unwrap_or_else(|| dice.batch());
            earlier.push(batch.clone());
            let one = memory.append(&key, expected, batch.clone()).await;
            let other = store.append(&key, expected, batch).await;
            assert_eq!(format!("{one:?}"), format!("{other:?}"), "{at}");
            if dice.below(40) == 0 {
                memory.delete(&key).await.unwrap();
                store.delete(&key).await.unwrap();
            }
            assert_read_alike(&memory, &store, &key, &mut dice, &at).await;
        }
    }
}

async fn assert_read_alike(
    memory: &InMemoryStore,
    store: &Store,
    key: &ConversationKey,
    dice: &mut Dice,
    at: &str,
) {
    let (count, after) = (dice.count(9), EntryId(dice.below(50)));
    let one = memory.read(key, after, count).await.unwrap();
    assert_eq!(one, store.read(key, after, count).await.unwrap(), "{at}");
    assert_eq!(memory.branches(key).await.unwrap(), store.branches(key).await.unwrap(), "{at}");
    for range in
        [ReadRange::All, ReadRange::LastEntries(count), ReadRange::LastTurns(count), ReadRange::LastTurns(1)]
    {
        let one = memory.load(key, range).await.unwrap();
        assert_eq!(one, store.load(key, range).await.unwrap(), "{at}, {range:?}");
        let tip = EntryId(dice.below(50));
        let one = memory.load_branch(key, tip, range).await;
        let other = store.load_branch(key, tip, range).await;
        assert_eq!(format!("{one:?}"), format!("{other:?}"), "{at}, {range:?} to {tip}");
    }
}

/// A seeded pseudo-random generator (an LCG with Knuth's factor).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn count(&mut self, bound: u64) -> usize {
        usize::try_from(self.below(bound)).unwrap()
    }

    fn turn(&mut self) -> TurnId {
        TurnId::new(["a", "b", "c"][self.count(3)]).unwrap()
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

    /// Creates a batch of up to four entries of any turns, under a key that may be in use.
    fn batch(&mut self) -> Batch {
        let entries = (0..self.below(5)).map(|_| {
            let new = NewEntry::new(self.turn(), self.kind());
            match self.below(3) {
                0 => new,
                round => new.with_round(u32::try_from(round).unwrap()),
            }
        });
        let entries = entries.collect();
        let round = u32::try_from(self.below(40)).unwrap();
        let mut batch = Batch::new(BatchKey::new(self.turn(), round, "\u{0}step"), entries);
        if self.below(4) == 0 {
            batch = batch.with_parent(EntryId(self.below(40)));
        }
        if self.below(4) == 0 { batch.with_token(FencingToken(1 + self.below(3))) } else { batch }
    }
}
