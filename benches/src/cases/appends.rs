//! Cases of the operations of a store in each round of a turn.

use advisor_chain::memory::ConversationStore;
use advisor_chain::memory::store::{Batch, BatchKey, EntryKind, NewEntry, Version};
use advisor_chain::{ConversationKey, InMemoryStore, Message, TurnId};

use super::{Case, runtime};

pub(super) fn cases() -> Vec<Case> {
    // Work of a store on a separate thread cannot be counted here; `tests/benches/append.rs` times the other
    // stores.
    vec![Case::new("append, in memory", "append", (100, 300), appending)]
}

fn appending(appends: usize) -> impl FnOnce() {
    let store = InMemoryStore::new();
    let key = ConversationKey::new("c").unwrap();
    let turn = TurnId::new("t").unwrap();
    let batch = |number: u32| {
        let entry = NewEntry::new(turn.clone(), EntryKind::Message(Message::user("x".repeat(500))));
        Batch::new(BatchKey::new(turn.clone(), number, "written"), vec![entry])
    };
    let batches: Vec<_> = (0..).take(appends).map(batch).collect();
    let runtime = runtime();
    move || {
        runtime.block_on(async {
            let mut version = Version::EMPTY;
            for batch in batches {
                version = store.append(&key, version, batch).await.unwrap();
            }
        });
    }
}
