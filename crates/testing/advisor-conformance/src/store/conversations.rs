//! Clauses about conversations: isolation, reading from the end, listing, deletion.

use std::time::Duration;

use advisor_core::{CallKey, CallStart, ConversationKey, TurnId};

use super::{Store, ended, new_key, new_name, said, texts};
use conversation_store::{
    Batch, BatchKey, EntryId, EntryKind, ListOrder, NewEntry, Page, ReadRange, Snapshot, Version,
};

/// Ids are opaque text. Two keys share neither entries nor batches nor leases if they differ only in case,
/// accents, encoding, or where the tenant ends. Each is listed unchanged, in byte order.
pub async fn keys_of_all_sorts_share_nothing(store: Store) {
    let run = new_name();
    let longest = format!("{run}{}", "x".repeat(512 - run.len()));
    let mut keys: Vec<_> = ODD_IDS.iter().map(|id| ConversationKey::in_tenant(&run, id).unwrap()).collect();
    keys.push(ConversationKey::in_tenant(&run, &longest).unwrap());
    let tenants: Vec<_> = ODD_IDS.iter().map(|id| format!("{run}{id}")).chain([longest.clone()]).collect();
    keys.extend(tenants.iter().map(|tenant| ConversationKey::in_tenant(tenant, "c").unwrap()));
    for (tenant, conversation) in
        [("/a", "b/c"), ("/a/b", "c"), (":a", "b:c"), (":a:b", "c"), ("%2Fa", "b/c")]
    {
        keys.push(ConversationKey::in_tenant(&format!("{run}{tenant}"), conversation).unwrap());
    }
    for (number, key) in keys.iter().enumerate() {
        let written = store.append(key, Version::EMPTY, said("t", 0, &[&format!("in {number}")])).await;
        assert_eq!(written.unwrap(), Version(1), "{key:?} is another conversation");
        if let Some(leases) = store.leases() {
            let turn = TurnId::new("t").unwrap();
            leases.acquire(key, &turn, Duration::from_secs(60), None, false).await.unwrap();
        }
    }
    for (number, key) in keys.iter().enumerate() {
        let read = store.load(key, ReadRange::All).await.unwrap();
        assert_eq!(texts(&read.entries), [format!("in {number}")], "{key:?}");
    }
    let mut expected: Vec<_> = keys.iter().filter(|key| key.tenant() == run).cloned().collect();
    expected.sort_by_key(|key| key.conversation().as_bytes().to_vec());
    assert_eq!(listed(&store, Page::first(run.as_str(), 5)).await, expected);
    for (number, key) in keys.iter().enumerate() {
        store.delete(key).await.unwrap();
        assert_eq!(store.load(key, ReadRange::All).await.unwrap().version, Version::EMPTY, "{key:?}");
        if let Some(next) = keys.get(number + 1) {
            let read = store.load(next, ReadRange::All).await.unwrap();
            assert_eq!(texts(&read.entries), [format!("in {}", number + 1)], "{key:?} took {next:?} with it");
        }
    }
    assert_eq!(listed(&store, Page::first(run.as_str(), 5)).await, []);
}

/// Ids that a store might escape, normalise or interpret.
const ODD_IDS: [&str; 48] = [
    "a", "A", "%41", "%61", "a.", "a..", ".", "..", "../a", "a/", "/a", "/", "//", "a b", " a", "a ", " ",
    "\t", "\n", "\r\n", "\u{7F}", "\u{1B}[2J", "{x}", "{", "}", "}{", "{}", "x", ":", "a:b", "*", "?", "[a]",
    "\\", "'", "\"", "$1", "; --", "(", "-", "+", "%", "é", "e\u{301}", "\u{1F980}", "\u{FEFF}a",
    "a\u{200B}", "\u{10FFFF}",
];

/// Returns the conversations of this page and of those after it.
async fn listed(store: &Store, mut page: Page) -> Vec<ConversationKey> {
    let mut listed = Vec::new();
    while let keys @ [.., last] = &*store.list(&page).await.unwrap() {
        assert!(keys.len() <= page.limit, "a page is longer than asked for");
        listed.extend(keys.iter().cloned());
        page.after = Some(last.clone());
    }
    listed
}

/// The last turn is open until its end is written, and again when more messages follow. It is returned whole in
/// every range. Only messages and ends open or close a turn; the start of a call does not.
pub async fn open_turn_is_reported_whole(store: Store) {
    let key = new_key();
    let open = async |range| store.load(&key, range).await.unwrap().open_turn;
    store.append(&key, Version::EMPTY, said("one", 0, &["a", "b", "c"])).await.unwrap();
    for range in
        [ReadRange::All, ReadRange::LastEntries(0), ReadRange::LastEntries(1), ReadRange::LastTurns(0)]
    {
        let open = open(range).await.unwrap_or_else(|| panic!("no open turn in {range:?}"));
        assert!(open.iter().all(|entry| entry.turn.as_str() == "one"), "{open:?}");
        assert_eq!(texts(&open), ["a", "b", "c"]);
    }
    store.append(&key, Version(3), ended("one", 1)).await.unwrap();
    assert_eq!(open(ReadRange::All).await, None);
    store.append(&key, Version(4), said("one", 2, &["d"])).await.unwrap();
    assert_eq!(open(ReadRange::LastEntries(1)).await.unwrap().len(), 5);
    store.append(&key, Version(5), ended("one", 3)).await.unwrap();
    store.append(&key, Version(6), said("two", 0, &["e"])).await.unwrap();
    assert_eq!(texts(&open(ReadRange::All).await.unwrap()), ["e"]);
    store.append(&key, Version(7), started("two", 1)).await.unwrap();
    assert_eq!(open(ReadRange::LastEntries(0)).await.unwrap().len(), 2, "a call of an open turn starts");
    store.append(&key, Version(8), ended("two", 2)).await.unwrap();
    store.append(&key, Version(9), started("two", 3)).await.unwrap();
    assert_eq!(open(ReadRange::All).await, None, "the start of a call opens no turn that has ended");
}

/// A deleted conversation is empty; deleting it twice is no error. If it begins anew, it has nothing of the deleted one:
/// no branch, no turn, no key of a batch.
pub async fn nothing_of_a_deleted_conversation_returns(store: Store) {
    let key = new_key();
    let mut version = Version::EMPTY;
    for (round, parent) in [(0, None), (1, None), (2, Some(1)), (3, Some(3)), (4, Some(0))] {
        let batch = said("t", round, &["old", "old"]).with_parent(parent.map(EntryId));
        version = store.append(&key, version, batch).await.unwrap();
    }
    store.delete(&key).await.unwrap();
    store.delete(&key).await.unwrap();
    assert_eq!(store.load(&key, ReadRange::All).await.unwrap(), Snapshot::default());
    let mut version = Version::EMPTY;
    for (round, turn, count) in [(0, "s", 3), (1, "t", 1), (2, "t", 2), (3, "u", 3), (4, "t", 1), (9, "v", 1)]
    {
        let texts = vec!["new"; count];
        version = store.append(&key, version, said(turn, round, &texts)).await.unwrap();
    }
    let log = store.read(&key, EntryId::BEGINNING, 99).await.unwrap();
    assert_eq!(texts(&log), ["new"; 11]);
    assert!(log.iter().all(|entry| entry.parent.is_none()), "a fork returned: {log:?}");
    assert_eq!(store.branches(&key).await.unwrap(), [EntryId(11)]);
    for tip in 1..=11 {
        for range in [ReadRange::All, ReadRange::LastTurns(1), ReadRange::LastTurns(2)] {
            let read = store.load_branch(&key, EntryId(tip), range).await.unwrap();
            let mut expected = Snapshot::from_branch(&log, EntryId(tip), range);
            expected.version = version;
            assert_eq!(read, expected, "{range:?} to {tip}");
        }
    }
    assert_eq!(store.load(&key, ReadRange::LastTurns(3)).await.unwrap().entries.len(), 5);
}

/// The list of a tenant's conversations is ordered and paged, with each conversation once.
pub async fn list_is_paged_in_order(store: Store) {
    let tenant = new_name();
    let names = ["b", "a", "A", "10", "9", "a-b", "a_b"];
    for name in names {
        let key = ConversationKey::in_tenant(&tenant, name).unwrap();
        store.append(&key, Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
    }
    store.delete(&ConversationKey::in_tenant(&tenant, "9").unwrap()).await.unwrap();
    let mut expected = ["10", "A", "a", "a-b", "a_b", "b"];
    for order in [ListOrder::Ascending, ListOrder::Descending] {
        let mut page = Page::first(tenant.as_str(), 4);
        page.order = order;
        let keys = listed(&store, page).await;
        assert!(
            keys.iter().map(ConversationKey::conversation).eq(expected),
            "{order:?}, by their bytes: {keys:?}"
        );
        expected.reverse();
    }
}

/// Keys are ordered by tenant first. After a key of a lower tenant the list starts; after one of a higher tenant
/// it is empty. In descending order it is the other way round. A tenant that is not a valid part of a key has no conversations.
pub async fn page_may_begin_after_key_of_another_tenant(store: Store) {
    let tenant = new_name();
    let (lower, higher) = (&tenant[..tenant.len() - 1], &format!("{tenant}-"));
    let key = ConversationKey::in_tenant(&tenant, "m").unwrap();
    store.append(&key, Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
    let places = [
        (&*tenant, "l", 1, 0),
        (&tenant, "m", 0, 0),
        (&tenant, "n", 0, 1),
        (lower, "z", 1, 0),
        (higher, "a", 0, 1),
    ];
    for (of, name, ascending, descending) in places {
        let after = ConversationKey::in_tenant(of, name).unwrap();
        for (order, listed) in [(ListOrder::Ascending, ascending), (ListOrder::Descending, descending)] {
            let mut page = Page::first(tenant.as_str(), usize::MAX);
            (page.order, page.after) = (order, Some(after.clone()));
            assert_eq!(store.list(&page).await.unwrap().len(), listed, "{order:?} after {after:?}");
        }
    }
    for (tenant, limit) in [(tenant.as_str(), 0), ("no\u{0}tenant", usize::MAX), ("", usize::MAX)] {
        assert_eq!(store.list(&Page::first(tenant, limit)).await.unwrap(), []);
    }
}

fn started(turn: &str, round: u32) -> Batch {
    let turn = TurnId::new(turn).unwrap();
    let start = EntryKind::CallStarted(CallStart::new(CallKey::new(turn.clone(), round, 0), "c1"));
    Batch::new(BatchKey::new(turn.clone(), round, "started"), vec![NewEntry::new(turn, start)])
}
