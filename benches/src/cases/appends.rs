//! What stores are asked in each round of a turn.

use advisor_chain::{
    Batch, BatchKey, ConversationKey, ConversationStore, EntryKind, InMemoryStore, Message, NewEntry,
    SqliteStore, TurnId, Version,
};

use super::{Case, runtime};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("append, in memory", "append", (100, 300), |appends| {
            appending(InMemoryStore::new(), appends)
        }),
        Case::new("append, SQLite, its own thread left out", "append", (20, 60), |appends| {
            let folder = tempfile::tempdir().unwrap();
            let store = runtime().block_on(SqliteStore::open(folder.path().join("store.db"))).unwrap();
            let append = appending(store, appends);
            move || {
                append();
                drop(folder);
            }
        }),
    ]
}

fn appending(store: impl ConversationStore, appends: usize) -> impl FnOnce() {
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
