//! What every [`ConversationStore`] must do: one clause per function, and the macro that runs them all.
//!
//! A clause panics where the store breaks it. Each makes conversations of its own, so that clauses can
//! run at once on one server.
//!
//! ```
//! mod conformance {
//!     // The expression makes the store; it may await.
//!     chat_memory_advisor::conformance!(chat_memory_advisor::InMemoryStore::new());
//! }
//! ```
//!
//! Each clause becomes a test on several threads of a tokio runtime, so the crate that uses the macro
//! needs tokio with `macros` and `rt-multi-thread`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a clause fails by panicking"
)]

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use advisor_core::{Block, ConversationKey, FinishReason, Message, ToolCall, ToolResult, TurnEnd, TurnId};
use serde_json::{Map, Value};
use tokio::task::{JoinSet, yield_now};

use crate::{
    Batch, BatchKey, ConversationStore, Entry, EntryKind, Fence, NewEntry, Page, StoreError, Version, View,
};

/// Runs every clause of the module [`conformance`](mod@crate::conformance) on a store, each as a test.
#[macro_export]
macro_rules! conformance {
    ($make_store:expr) => {
        $crate::conformance! { @tests $make_store;
            append_keeps_order
            every_kind_of_message_survives
            unknown_kinds_survive
            texts_of_all_sorts_survive
            a_large_entry_survives
            unknown_conversation_is_empty
            conversations_and_tenants_are_isolated
            a_refused_append_leaves_no_trace
            no_reader_sees_half_a_batch
            same_key_gives_the_same_version
            same_key_with_other_content_is_refused
            key_is_checked_before_version
            wrong_version_is_a_conflict
            versions_have_no_gaps_under_eight_writers
            writes_are_read_at_once
            views_count_from_the_end
            open_turn_is_reported_whole
            deleted_conversation_is_empty
            append_after_delete_is_gone
            older_fence_is_refused
            list_is_paged_in_order
            a_dropped_append_is_applied_whole_or_not_at_all
        }
    };
    (@tests $make_store:expr; $($clause:ident)*) => {$(
        #[::tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $clause() {
            $crate::conformance::$clause(::std::sync::Arc::new($make_store)).await;
        }
    )*};
}

type Store = Arc<dyn ConversationStore>;

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

/// Messages of every role and ends of every kind are read as they were written, each in its turn.
pub async fn every_kind_of_message_survives(store: Store) {
    let call = ToolCall::new("c1", "look", "{\"at\": [1, 2.5, null]}");
    let kinds = vec![
        EntryKind::Message(Message::user("u")),
        EntryKind::Message(Message::assistant_blocks(vec![Block::text("t"), Block::from(call.clone())])),
        EntryKind::Message(Message::tool(ToolResult::error(&call, "no"))),
        EntryKind::TurnEnded(TurnEnd::Interrupted { partial: "par".into() }),
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

/// A conversation that nobody wrote is empty, at version 0, and has no open turn.
pub async fn unknown_conversation_is_empty(store: Store) {
    for view in [View::All, View::LastEntries(5), View::LastTurns(5)] {
        let read = store.load(&new_key(), view).await.unwrap();
        assert!(read.entries.is_empty() && read.open_turn.is_none(), "{read:?}");
        assert_eq!(read.version, Version::EMPTY);
    }
}

/// Conversations of one name in two tenants, and two conversations of one tenant, share nothing: neither
/// entries nor versions nor keys.
pub async fn conversations_and_tenants_are_isolated(store: Store) {
    let (one, other) = (new_name(), new_name());
    let keys = [(&one, "a"), (&one, "b"), (&other, "a")]
        .map(|(tenant, conversation)| ConversationKey::in_tenant(tenant, conversation).unwrap());
    for (number, key) in keys.iter().enumerate() {
        let batch = said("t", 0, &[&format!("in {number}")]);
        assert_eq!(store.append(key, Version::EMPTY, batch).await.unwrap(), Version::new(1));
    }
    store.delete(&keys[1]).await.unwrap();
    assert_eq!(texts(&store.load(&keys[0], View::All).await.unwrap().entries), ["in 0"]);
    assert!(store.load(&keys[1], View::All).await.unwrap().entries.is_empty());
    assert_eq!(texts(&store.load(&keys[2], View::All).await.unwrap().entries), ["in 2"]);
}

/// An append that is refused writes none of its entries, and its key stays free.
pub async fn a_refused_append_leaves_no_trace(store: Store) {
    let key = new_key();
    let version = store.append(&key, Version::EMPTY, said("t", 0, &["a", "b"])).await.unwrap();
    let refused = said("t", 1, &["c", "d", "e"]);
    store.append(&key, Version::new(1), refused.clone()).await.unwrap_err();
    let read = store.load(&key, View::All).await.unwrap();
    assert_eq!((texts(&read.entries), read.version), (vec![String::from("a"), "b".into()], version));
    assert_eq!(store.append(&key, version, refused).await.unwrap(), Version::new(5));
}

/// While batches of three are appended, no load sees a part of one, and the version fits the entries.
pub async fn no_reader_sees_half_a_batch(store: Store) {
    let key = new_key();
    let (writer, written) = (Arc::clone(&store), key.clone());
    let writing = tokio::task::spawn(async move {
        for round in 0..50 {
            let version = Version::new(u64::from(round) * 3);
            writer.append(&written, version, said("t", round, &["1", "2", "3"])).await.unwrap();
        }
    });
    while !writing.is_finished() {
        let read = store.load(&key, View::All).await.unwrap();
        assert_eq!(read.entries.len() % 3, 0, "half a batch was read");
        assert_eq!(read.version.as_u64(), read.entries.len() as u64);
        yield_now().await;
    }
    writing.await.unwrap();
}

/// The same batch under the same key gives the version of the first time and changes nothing.
pub async fn same_key_gives_the_same_version(store: Store) {
    let key = new_key();
    let batch = said("t", 0, &["a", "b"]);
    let version = store.append(&key, Version::EMPTY, batch.clone()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(store.append(&key, Version::EMPTY, batch.clone()).await.unwrap(), version);
    }
    assert_eq!(texts(&store.load(&key, View::All).await.unwrap().entries), ["a", "b"]);
}

/// A key that was used for other entries is refused, at any version, and nothing is written.
pub async fn same_key_with_other_content_is_refused(store: Store) {
    let key = new_key();
    let version = store.append(&key, Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    for other in [said("t", 0, &["b"]), said("t", 0, &["a", "a"]), said("t", 0, &[])] {
        for expected in [Version::EMPTY, version, Version::new(9)] {
            let refused = store.append(&key, expected, other.clone()).await;
            assert!(matches!(refused, Err(StoreError::KeyReused)), "{refused:?}");
        }
    }
    assert_eq!(texts(&store.load(&key, View::All).await.unwrap().entries), ["a"]);
}

/// A batch that was applied is recognised although the version it expected is long past.
pub async fn key_is_checked_before_version(store: Store) {
    let key = new_key();
    let first = said("t", 0, &["a"]);
    let version = store.append(&key, Version::EMPTY, first.clone()).await.unwrap();
    store.append(&key, version, said("t", 1, &["b"])).await.unwrap();
    for expected in [0, 1, 2, 7].map(Version::new) {
        assert_eq!(store.append(&key, expected, first.clone()).await.unwrap(), version);
    }
    assert_eq!(texts(&store.load(&key, View::All).await.unwrap().entries), ["a", "b"]);
}

/// A new batch at another version than the current one is a conflict that names the current one.
pub async fn wrong_version_is_a_conflict(store: Store) {
    let key = new_key();
    let version = store.append(&key, Version::EMPTY, said("t", 0, &["a", "b"])).await.unwrap();
    for expected in [0, 1, 3].map(Version::new) {
        match store.append(&key, expected, said("t", 1, &["c"])).await {
            Err(StoreError::Conflict { current }) => assert_eq!(current, version),
            other => panic!("expected a conflict at {expected}, got {other:?}"),
        }
    }
}

/// Eight writers at once lose nothing, and the numbers have no gaps.
pub async fn versions_have_no_gaps_under_eight_writers(store: Store) {
    let key = new_key();
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let (store, key) = (Arc::clone(&store), key.clone());
        writers.spawn(async move { write_ten(&store, &key, writer).await });
    }
    let versions: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    let read = store.load(&key, View::All).await.unwrap();
    assert!(read.entries.iter().map(|entry| entry.seq).eq(1..=160), "gaps in the sequence numbers");
    let mut seen: Vec<_> = versions.iter().map(|version| version.as_u64()).collect();
    seen.sort_unstable();
    assert!(seen.into_iter().eq((1..=80).map(|batch| batch * 2)), "two appends led to one version");
    for writer in 0..8 {
        let own: Vec<_> =
            texts(&read.entries).into_iter().filter(|text| text.starts_with(&format!("{writer} "))).collect();
        assert_eq!(own.len(), 20, "appends of writer {writer} were lost");
    }
}

/// Who has appended reads it, from any thread.
pub async fn writes_are_read_at_once(store: Store) {
    let key = new_key();
    for round in 0..20 {
        let version = Version::new(u64::from(round));
        let written = store.append(&key, version, said("t", round, &["x"])).await.unwrap();
        let (reader, read) = (Arc::clone(&store), key.clone());
        let reading = tokio::task::spawn(async move { reader.load(&read, View::LastEntries(1)).await });
        let read = reading.await.unwrap().unwrap();
        assert_eq!(read.version, written);
        assert_eq!(read.entries.last().map(|entry| entry.seq), Some(written.as_u64()));
    }
}

/// Views give the last entries, or all entries of the last turns; the version is that of the whole.
pub async fn views_count_from_the_end(store: Store) {
    let key = new_key();
    let mut version = Version::EMPTY;
    for (turn, texts) in [("one", &["a", "b"][..]), ("two", &["c"]), ("three", &["d", "e"])] {
        version = store.append(&key, version, said(turn, 0, texts)).await.unwrap();
    }
    for (view, expected) in [
        (View::All, "abcde"),
        (View::LastEntries(0), ""),
        (View::LastEntries(2), "de"),
        (View::LastEntries(9), "abcde"),
        (View::LastTurns(0), ""),
        (View::LastTurns(2), "cde"),
        (View::LastTurns(9), "abcde"),
    ] {
        let read = store.load(&key, view).await.unwrap();
        assert_eq!((texts(&read.entries).concat().as_str(), read.version), (expected, version), "{view:?}");
    }
}

/// The last turn is open until its end is written, and again when more follows; it comes whole, whatever the view.
pub async fn open_turn_is_reported_whole(store: Store) {
    let key = new_key();
    let open = async |view| store.load(&key, view).await.unwrap().open_turn;
    store.append(&key, Version::EMPTY, said("one", 0, &["a", "b", "c"])).await.unwrap();
    for view in [View::All, View::LastEntries(0), View::LastEntries(1), View::LastTurns(0)] {
        let open = open(view).await.unwrap_or_else(|| panic!("no open turn in {view:?}"));
        assert_eq!((open.turn.as_str(), texts(&open.entries).concat().as_str()), ("one", "abc"));
    }
    store.append(&key, Version::new(3), ended("one", 1)).await.unwrap();
    assert_eq!(open(View::All).await, None);
    store.append(&key, Version::new(4), said("one", 2, &["d"])).await.unwrap();
    assert_eq!(open(View::LastEntries(1)).await.unwrap().entries.len(), 5);
    store.append(&key, Version::new(5), ended("one", 3)).await.unwrap();
    store.append(&key, Version::new(6), said("two", 0, &["e"])).await.unwrap();
    assert_eq!(texts(&open(View::All).await.unwrap().entries), ["e"]);
}

/// A deleted conversation is as if it had never been, and can be begun again. Deleting twice is no error.
pub async fn deleted_conversation_is_empty(store: Store) {
    let key = new_key();
    let batch = said("t", 0, &["a"]);
    store.append(&key, Version::EMPTY, batch.clone()).await.unwrap();
    store.delete(&key).await.unwrap();
    store.delete(&key).await.unwrap();
    let read = store.load(&key, View::All).await.unwrap();
    assert!(read.entries.is_empty() && read.version == Version::EMPTY && read.open_turn.is_none());
    assert_eq!(store.append(&key, Version::EMPTY, batch).await.unwrap(), Version::new(1));
    assert_eq!(texts(&store.load(&key, View::All).await.unwrap().entries), ["a"]);
}

/// A writer that loaded a conversation before it was deleted does not bring it back.
pub async fn append_after_delete_is_gone(store: Store) {
    let key = new_key();
    let version = store.append(&key, Version::EMPTY, said("t", 0, &["a"])).await.unwrap();
    store.delete(&key).await.unwrap();
    let refused = store.append(&key, version, said("t", 1, &["b"])).await;
    assert!(matches!(refused, Err(StoreError::Gone)), "{refused:?}");
    assert_eq!(store.load(&key, View::All).await.unwrap().version, Version::EMPTY);
}

/// A writer whose right has passed on is refused, also after one that needed none. A store that knows no
/// rights refuses them all.
pub async fn older_fence_is_refused(store: Store) {
    let key = new_key();
    let batch = |round, fence| said("t", round, &["x"]).with_fence(Fence::new(fence));
    let mut version = match store.append(&key, Version::EMPTY, batch(0, 5)).await {
        Err(StoreError::Unsupported { .. }) => return,
        written => written.unwrap(),
    };
    for written in [said("t", 1, &["y"]), batch(2, 5), batch(3, 6), batch(4, 6)] {
        let refused = store.append(&key, version, batch(9, 4)).await;
        assert!(matches!(refused, Err(StoreError::Fenced)), "{refused:?}");
        version = store.append(&key, version, written).await.unwrap();
    }
    assert_eq!(version, Version::new(5));
}

/// The list of a tenant's conversations comes in order, in pages, each conversation once.
pub async fn list_is_paged_in_order(store: Store) {
    let tenant = new_name();
    let names = ["b", "a", "A", "10", "9", "a-b", "a_b"];
    for name in names {
        let key = ConversationKey::in_tenant(&tenant, name).unwrap();
        store.append(&key, Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
    }
    store.delete(&ConversationKey::in_tenant(&tenant, "9").unwrap()).await.unwrap();
    let mut listed = Vec::new();
    let mut page = Page::first(tenant.as_str(), 4);
    while let keys @ [.., last] = &*store.list(&page).await.unwrap() {
        assert!(keys.len() <= 4, "a page is longer than asked for");
        listed.extend(keys.iter().map(|key| String::from(key.conversation())));
        page = page.after(last.clone());
    }
    assert_eq!(listed, ["10", "A", "a", "a-b", "a_b", "b"], "in the order of their bytes");
}

/// An append that is dropped at any of its await points is applied as a whole or not at all, and the
/// conversation goes on.
pub async fn a_dropped_append_is_applied_whole_or_not_at_all(store: Store) {
    let key = new_key();
    for polls in 0..12 {
        let version = store.load(&key, View::LastEntries(0)).await.unwrap().version;
        let dropped = said("dropped", polls, &["1", "2", "3"]);
        poll_times(store.append(&key, version, dropped), polls).await;
        write_whatever_comes(&store, &key, said("next", polls, &["n"])).await;
    }
    let read = store.load(&key, View::All).await.unwrap();
    let turns = read.entries.chunk_by(|one, next| one.turn == next.turn);
    for turn in turns.filter(|turn| turn[0].turn.as_str() == "dropped") {
        assert_eq!(texts(turn), ["1", "2", "3"], "a part of a batch was written");
    }
    assert!(read.entries.iter().map(|entry| entry.seq).eq(1..=read.version.as_u64()));
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

/// Appends ten batches of two, each until it is written.
async fn write_ten(store: &Store, key: &ConversationKey, writer: u32) -> Vec<Version> {
    let mut versions = Vec::new();
    for round in 0..10 {
        let text = format!("{writer} {round}");
        let batch = said(&format!("t{writer}"), round, &[&text, &text]);
        versions.push(write_whatever_comes(store, key, batch).await);
    }
    versions
}

async fn write_whatever_comes(store: &Store, key: &ConversationKey, batch: Batch) -> Version {
    loop {
        let version = store.load(key, View::LastEntries(0)).await.unwrap().version;
        match store.append(key, version, batch.clone()).await {
            Err(StoreError::Conflict { .. }) => yield_now().await,
            written => return written.unwrap(),
        }
    }
}

/// Polls a future so often, then drops it.
async fn poll_times(work: impl Future, times: u32) {
    let mut work = Box::pin(work);
    for _ in 0..times {
        let ended = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx).is_ready())).await;
        if ended {
            return;
        }
        yield_now().await;
    }
}

fn said(turn: &str, round: u32, texts: &[&str]) -> Batch {
    let turn = TurnId::new(turn).unwrap();
    let entry = |text: &&str| NewEntry::new(turn.clone(), EntryKind::Message(Message::user(*text)));
    Batch::new(BatchKey::new(turn.clone(), round, "said"), texts.iter().map(entry).collect())
}

fn ended(turn: &str, round: u32) -> Batch {
    let turn = TurnId::new(turn).unwrap();
    let end = EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop));
    Batch::new(BatchKey::new(turn.clone(), round, "ended"), vec![NewEntry::new(turn, end)])
}

fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().filter_map(|entry| entry.kind.as_message()).map(Message::text).collect()
}

fn new_key() -> ConversationKey {
    ConversationKey::new(&new_name()).unwrap()
}

/// A name that no other test uses, on whatever server the store is.
fn new_name() -> String {
    String::from(TurnId::mint())
}

#[cfg(test)]
mod tests;
