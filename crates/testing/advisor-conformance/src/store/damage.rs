//! Clauses about damaged entries. The macro does not run them: a store's own tests call them, since only those
//! tests can damage stored data.

use advisor_core::{ConversationKey, FinishReason, Message, TurnEnd, TurnId};

use super::{Store, new_key};
use conversation_store::StoreError::KeyReused;
use conversation_store::{
    Batch, BatchKey, Entry, EntryId, EntryKind, NewEntry, ReadRange, Snapshot, Version,
};

/// A kind of damage to a stored entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a test must be able to do each of them")]
pub enum Damage {
    /// The body is replaced by this text.
    Body(&'static str),
    /// The turn id is replaced by an invalid one: `no turn`.
    Turn,
    /// The entry is removed.
    Removed,
}

const BODIES: [&str; 6] = [
    "secret",
    "\"secret\"",
    "{}",
    "",
    r#"{"format":1,"kind":"message","value":"secret"}"#,
    r#"{"format":1,"kind":"message","#,
];

/// Damages each entry in each way. The entry must be returned in its place as stored, and all others unchanged,
/// also if it was the only entry of its turn.
///
/// `goes_on` is called with each damaged conversation. It starts a turn in it, whose request must be valid (law
/// M6).
pub async fn a_damaged_entry_harms_no_other(
    store: Store,
    damage: impl AsyncFn(&ConversationKey, u64, Damage),
    goes_on: impl AsyncFn(Store, &ConversationKey),
) {
    let damages = BODIES.map(Damage::Body).into_iter().chain([Damage::Turn, Damage::Removed]);
    for how in damages {
        for seq in 1..=ENTRIES {
            let key = new_key();
            let last = three_turns(&store, &key).await;
            let before = all_reads(&store, &key).await;
            let body = serde_json::to_string(&before.log[place(seq)].kind).unwrap();
            damage(&key, seq, how).await;
            let raw = match how {
                Damage::Body(raw) => raw.as_bytes().to_vec(),
                Damage::Turn => body.into_bytes(),
                Damage::Removed => Vec::new(),
            };
            let after = all_reads(&store, &key).await;
            assert_same_but_for(seq, &EntryKind::Corrupt(raw), how, &before, &after);
            if how != Damage::Removed {
                let again = store.append(&key, Version::EMPTY, last).await;
                assert_eq!(
                    again.unwrap(),
                    Version(ENTRIES),
                    "known by its key and the rest: {how:?} of {seq}"
                );
            }
            goes_on(Store::clone(&store), &key).await;
        }
        for earlier in [vec![], vec![said("u"), ended()]] {
            let key = new_key();
            let version = store.append(&key, Version::EMPTY, turn("one", earlier)).await.unwrap();
            let version = store.append(&key, version, turn("two", vec![said("v")])).await.unwrap();
            damage(&key, version.0, how).await;
            goes_on(Store::clone(&store), &key).await;
        }
    }
}

/// A batch is recognised if its entry is stored in a different JSON form, as another version may have written it.
/// The same entry with another turn is another batch.
pub async fn batch_is_recognized_by_its_content(
    store: Store,
    damage: impl AsyncFn(&ConversationKey, u64, Damage),
) {
    const IN_OTHER_WORDS: &str =
        r#"{ "value": { "text": "short", "until": 0 }, "kind": "summary", "format": 1 }"#;
    let key = new_key();
    let turn = TurnId::new("t").unwrap();
    let summary = NewEntry::new(turn.clone(), EntryKind::Summary("short".into()));
    let batch = Batch::new(BatchKey::new(turn, 0, "x"), vec![summary]);
    let version = store.append(&key, Version::EMPTY, batch.clone()).await.unwrap();
    damage(&key, 1, Damage::Body(IN_OTHER_WORDS)).await;
    assert_eq!(store.append(&key, Version::EMPTY, batch.clone()).await.unwrap(), version);
    let mut other = batch;
    other.entries[0].turn = TurnId::new("another").unwrap();
    refused!(store.append(&key, version, other), KeyReused);
}

const ENTRIES: u64 = 9;

/// Writes three turns: one with a call and its result, one that has ended, and one that is open; and a branch
/// after the first. Returns the last batch.
async fn three_turns(store: &Store, key: &ConversationKey) -> Batch {
    let call = advisor_core::ToolCall::new("c1", "look", "{}");
    let result = Message::tool(advisor_core::ToolResult::new(&call, vec!["seen".into()]));
    let one = vec![
        said("u"),
        EntryKind::Message(Message::assistant_blocks(vec![call.into()])),
        EntryKind::Message(result),
        answered("a"),
        ended(),
    ];
    let version = store.append(key, Version::EMPTY, turn("one", one)).await.unwrap();
    let version = store.append(key, version, turn("two", vec![said("v"), ended()])).await.unwrap();
    let last = turn("three", vec![said("w"), answered("b")]).with_parent(EntryId(5));
    assert_eq!(store.append(key, version, last.clone()).await.unwrap(), Version(ENTRIES));
    last
}

fn turn(name: &str, kinds: Vec<EntryKind>) -> Batch {
    let turn = TurnId::new(name).unwrap();
    let entries = kinds.into_iter().map(|kind| NewEntry::new(turn.clone(), kind)).collect();
    Batch::new(BatchKey::new(turn, 0, "all"), entries)
}

fn said(text: &str) -> EntryKind {
    EntryKind::Message(Message::user(text))
}

fn answered(text: &str) -> EntryKind {
    EntryKind::Message(Message::assistant(text))
}

fn ended() -> EntryKind {
    EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop))
}

/// Everything that a store returns for a conversation.
struct Reads {
    log: Vec<Entry>,
    snapshots: Vec<Snapshot>,
    tips: Vec<EntryId>,
}

async fn all_reads(store: &Store, key: &ConversationKey) -> Reads {
    let log = store.read(key, EntryId::BEGINNING, 99).await.unwrap();
    let mut snapshots = Vec::new();
    for tip in [7, 9].map(EntryId) {
        for range in RANGES {
            snapshots.push(store.load_branch(key, tip, range).await.unwrap());
        }
    }
    for range in RANGES {
        snapshots.push(store.load(key, range).await.unwrap());
    }
    Reads { log, snapshots, tips: store.branches(key).await.unwrap() }
}

const RANGES: [ReadRange; 7] = [
    ReadRange::All,
    ReadRange::LastEntries(0),
    ReadRange::LastEntries(1),
    ReadRange::LastEntries(4),
    ReadRange::LastTurns(0),
    ReadRange::LastTurns(1),
    ReadRange::LastTurns(2),
];

fn assert_same_but_for(seq: u64, kind: &EntryKind, how: Damage, before: &Reads, after: &Reads) {
    let expected = |entries: &[Entry]| -> Vec<_> {
        let damaged = |entry: &Entry| {
            let kind = if entry.seq == seq { kind } else { &entry.kind };
            (entry.seq, entry.parent, kind.clone())
        };
        entries.iter().map(damaged).collect()
    };
    let told = |entries: &[Entry]| -> Vec<_> {
        entries.iter().map(|entry| (entry.seq, entry.parent, entry.kind.clone())).collect()
    };
    assert_eq!(told(&after.log), expected(&before.log), "{how:?} of {seq}");
    assert_eq!(after.tips, before.tips, "{how:?} of {seq}");
    for (before, after) in before.snapshots.iter().zip(&after.snapshots) {
        assert_eq!(after.version, before.version);
        // If the removed row was the start or the end of a turn, that information is lost.
        if how == Damage::Removed {
            continue;
        }
        assert_eq!(told(&after.entries), expected(&before.entries), "{how:?} of {seq}");
        let open =
            |snapshot: &Snapshot, told: &dyn Fn(&[Entry]) -> Vec<_>| snapshot.open_turn.as_deref().map(told);
        assert_eq!(open(after, &told), open(before, &expected), "{how:?} of {seq}: the open turn");
        let turns = |entries: &[Entry]| -> Vec<_> {
            let others = entries.iter().filter(|entry| how != Damage::Turn || entry.seq != seq);
            others.map(|entry| entry.turn.clone()).collect()
        };
        assert_eq!(turns(&after.entries), turns(&before.entries), "{how:?} of {seq}");
    }
}

fn place(seq: u64) -> usize {
    usize::try_from(seq - 1).unwrap()
}
