//! Clauses about branches: paths from their last entry back through parents.

use advisor_core::TurnId;

use super::{Store, new_key, said, texts};
use conversation_store::StoreError::{Conflict, KeyReused, NoSuchEntry};
use conversation_store::{
    Batch, BatchKey, Entry, EntryId, EntryKind, NewEntry, ReadRange, Snapshot, Version,
};

/// A batch that names a parent starts a branch after it. Later batches continue that branch until another one
/// starts. Numbers count the whole log without gaps.
pub async fn a_branch_goes_from_its_parent(store: Store) {
    let key = new_key();
    let version = forked(&store, &key).await;
    assert_eq!(version, Version(9));
    let read = store.load(&key, ReadRange::All).await.unwrap();
    assert_eq!((texts(&read.entries).concat().as_str(), read.version), ("abfghi", version));
    assert!(read.entries.iter().map(|entry| entry.seq).eq([1, 2, 6, 7, 8, 9]), "{read:?}");
    let parents: Vec<_> = read.entries.iter().filter_map(|entry| Some((entry.seq, entry.parent?))).collect();
    assert_eq!(parents, [(6, EntryId(2))], "an entry has its parent if that is not the previous entry");
    // Naming the last entry as parent starts no branch.
    store.append(&key, version, said("v", 0, &["j"]).with_parent(EntryId(9))).await.unwrap();
    let read = store.load(&key, ReadRange::LastEntries(1)).await.unwrap();
    assert_eq!(read.entries.first().and_then(|entry| entry.parent), None);
    assert_eq!(store.branches(&key).await.unwrap(), [5, 10].map(EntryId));
}

/// An older branch can be read up to its tip, or up to any of its entries, in every range.
/// `Snapshot::from_branch` gives the expected result.
pub async fn an_older_branch_is_read_in_every_view(store: Store) {
    let key = new_key();
    let mut version = forked(&store, &key).await;
    for (parent, turn) in [(5, "four"), (0, "five"), (11, "six"), (7, "seven"), (13, "two")] {
        let batch = said(turn, 9, &["x", "y"]).with_parent(EntryId(parent));
        version = store.append(&key, version, batch).await.unwrap();
    }
    let log = store.read(&key, EntryId::BEGINNING, 99).await.unwrap();
    assert_eq!(log.len() as u64, version.0);
    for tip in (0..=version.0).map(EntryId) {
        for count in [0, 1, 2, 3, 4, 5, 6, 99] {
            for range in [ReadRange::All, ReadRange::LastEntries(count), ReadRange::LastTurns(count)] {
                let read = store.load_branch(&key, tip, range).await.unwrap();
                let mut expected = Snapshot::from_branch(&log, tip, range);
                expected.version = version;
                assert_eq!(read, expected, "{range:?} of the branch to {tip}");
            }
        }
    }
    assert_eq!(
        store.load(&key, ReadRange::All).await.unwrap(),
        store.load_branch(&key, EntryId(version.0), ReadRange::All).await.unwrap()
    );
}

/// The tips of all branches are listed in order. A branch that was continued is listed with its new tip.
pub async fn branches_are_listed_by_their_tips(store: Store) {
    let key = new_key();
    assert_eq!(store.branches(&key).await.unwrap(), []);
    let version = forked(&store, &key).await;
    assert_eq!(store.branches(&key).await.unwrap(), [5, 9].map(EntryId));
    let version = store.append(&key, version, said("on", 0, &["k"]).with_parent(EntryId(5))).await.unwrap();
    assert_eq!(store.branches(&key).await.unwrap(), [9, 10].map(EntryId));
    let read = store.load(&key, ReadRange::All).await.unwrap();
    assert_eq!(texts(&read.entries).concat(), "abcdek");
    store.append(&key, version, said("new", 0, &["l"]).with_parent(EntryId::BEGINNING)).await.unwrap();
    assert_eq!(store.branches(&key).await.unwrap(), [9, 10, 11].map(EntryId));
    assert_eq!(texts(&store.load(&key, ReadRange::All).await.unwrap().entries), ["l"]);
    assert!(store.load(&key, ReadRange::All).await.unwrap().entries[0].follows() == EntryId::BEGINNING);
}

/// Whether a branch's last turn is open does not depend on other branches. The open turn is returned whole, also
/// across a fork point.
pub async fn the_open_turn_is_that_of_the_branch(store: Store) {
    let key = new_key();
    let end = EntryKind::TurnEnded(advisor_core::TurnEnd::RolledBack);
    let batch = |round, text: &str, end: Option<&EntryKind>| {
        let mut batch = said("t", round, &[text]);
        let end = end.map(|end| NewEntry::new(batch.key.turn.clone(), end.clone()));
        batch.entries.extend(end);
        batch
    };
    let version = store.append(&key, Version::EMPTY, batch(0, "a", None)).await.unwrap();
    let version = store.append(&key, version, batch(1, "b", Some(&end))).await.unwrap();
    let open = async |tip| {
        let read = store.load_branch(&key, EntryId(tip), ReadRange::LastEntries(1)).await.unwrap();
        read.open_turn.map(|open| texts(&open).concat())
    };
    assert_eq!((open(1).await, open(3).await), (Some("a".into()), None));
    assert_eq!(open(2).await, Some("ab".into()));
    let branch = batch(2, "c", None).with_parent(EntryId(1));
    let version = store.append(&key, version, branch).await.unwrap();
    assert_eq!((open(4).await, open(3).await), (Some("ac".into()), None));
    let read = store.load(&key, ReadRange::LastEntries(0)).await.unwrap();
    assert_eq!(texts(&read.open_turn.unwrap()), ["a", "c"]);
    let closing =
        Batch::new(BatchKey::new(TurnId::new("t").unwrap(), 3, "end"), batch(9, "", Some(&end)).entries);
    store.append(&key, version, closing).await.unwrap();
    assert_eq!((open(6).await, open(4).await), (None, Some("ac".into())));
}

/// A parent or a tip that does not exist is a typed error, and nothing is written.
pub async fn a_parent_must_exist(store: Store) {
    let key = new_key();
    let nowhere = EntryId(3);
    let lost = |round, text| said("t", round, &[text]).with_parent(nowhere);
    refused!(store.append(&key, Version::EMPTY, lost(0, "a")), NoSuchEntry { id } if id == nowhere);
    assert_eq!(store.load(&key, ReadRange::All).await.unwrap().version, Version::EMPTY);
    let first = said("t", 0, &["a", "b"]).with_parent(EntryId::BEGINNING);
    let version = store.append(&key, Version::EMPTY, first).await.unwrap();
    refused!(store.append(&key, version, lost(1, "c")), NoSuchEntry { id } if id == nowhere);
    for key in [&key, &new_key()] {
        refused!(store.load_branch(key, nowhere, ReadRange::All), NoSuchEntry { id } if id == nowhere);
    }
    refused!(store.append(&key, Version(9), lost(1, "c")), Conflict { .. }, "the version comes first");
    let read = store.load(&key, ReadRange::All).await.unwrap();
    assert_eq!((read.version, texts(&read.entries).len()), (version, 2));
    let none = store.load_branch(&new_key(), EntryId::BEGINNING, ReadRange::All).await.unwrap();
    assert_eq!(none, Snapshot::default());
}

/// A batch that started a branch is recognised by its key; with another parent it is another batch.
pub async fn parent_is_part_of_batch_identity(store: Store) {
    let key = new_key();
    let version = store.append(&key, Version::EMPTY, said("t", 0, &["a", "b"])).await.unwrap();
    let branch = |parent: Option<u64>| said("t", 1, &["c"]).with_parent(parent.map(EntryId));
    let written = store.append(&key, version, branch(Some(1))).await.unwrap();
    assert_eq!(store.append(&key, version, branch(Some(1))).await.unwrap(), written);
    let plain = |parent: Option<u64>| said("t", 2, &["d"]).with_parent(parent.map(EntryId));
    let last = store.append(&key, written, plain(None)).await.unwrap();
    assert_eq!(store.append(&key, written, plain(Some(3))).await.unwrap(), last, "the one before it");
    for other in [branch(None), branch(Some(0)), branch(Some(2)), plain(Some(1))] {
        refused!(store.append(&key, version, other), KeyReused);
    }
}

/// Entries of all branches are read in pages, in the order in which they were written.
pub async fn a_log_is_read_in_pages(store: Store) {
    let key = new_key();
    assert_eq!(store.read(&key, EntryId::BEGINNING, 9).await.unwrap(), []);
    forked(&store, &key).await;
    let all = store.read(&key, EntryId::BEGINNING, usize::MAX).await.unwrap();
    assert_eq!(texts(&all).concat(), "abcdefghi");
    assert!(all.iter().map(|entry| entry.seq).eq(1..=9));
    for limit in 1..=10 {
        let mut read: Vec<Entry> = Vec::new();
        loop {
            let after = EntryId(read.last().map_or(0, |last| last.seq));
            let page = store.read(&key, after, limit).await.unwrap();
            assert!(page.len() <= limit, "a page is longer than asked for");
            if page.is_empty() {
                break;
            }
            read.extend(page);
        }
        assert_eq!(read, all, "in pages of {limit}");
    }
    assert_eq!(store.read(&key, EntryId::BEGINNING, 0).await.unwrap(), []);
    for after in [9, 10, u64::MAX] {
        assert_eq!(store.read(&key, EntryId(after), 9).await.unwrap(), []);
    }
}

/// Writes entries `a` to `i`. `a b` and `c d e` are of two turns. `f g` and `h i` follow `b`.
async fn forked(store: &Store, key: &advisor_core::ConversationKey) -> Version {
    let mut version = Version::EMPTY;
    for (turn, texts, parent) in [
        ("one", &["a", "b"][..], None),
        ("two", &["c", "d", "e"], None),
        ("three", &["f", "g"], Some(EntryId(2))),
        ("three", &["h", "i"], None),
    ] {
        let round = u32::try_from(version.0).unwrap();
        let batch = said(turn, round, texts).with_parent(parent);
        version = store.append(key, version, batch).await.unwrap();
    }
    version
}
