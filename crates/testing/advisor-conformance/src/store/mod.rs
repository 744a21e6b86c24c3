//! The conformance suite of a [`ConversationStore`]: one clause per function, and the macro that runs them all.
//!
//! A clause panics if the store violates it. Each uses its own conversations, so that clauses can run concurrently
//! on one server.
//!
//! ```
//! mod conformance {
//!     // The expression makes the store; it may await.
//!     advisor_conformance::store_conformance!(conversation_store::InMemoryStore::new());
//! }
//! ```
//!
//! Each sentence of the contract has clauses:
//!
//! | contract | clauses |
//! | --- | --- |
//! | a batch is appended whole and in order, or not at all | [`wrong_version_is_a_conflict`], [`batch_is_never_read_partially`] |
//! | versions are numbers of entries, without gaps | [`versions_have_no_gaps_under_eight_writers`], [`a_long_log_keeps_its_order`], [`one_of_concurrent_starts_succeeds`] |
//! | the key goes first | [`keys_of_batches_are_compared_whole`], [`same_key_with_other_content_is_refused`], [`key_is_checked_before_version`] |
//! | then token, existence, version, last turn, parent | [`batch_refusals_are_reported_in_fixed_order`], [`a_used_fence_outlives_a_deletion`], [`wrong_version_is_a_conflict`], [`another_last_turn_is_refused`], [`a_parent_must_exist`] |
//! | a token counts for ever | [`a_used_fence_outlives_a_deletion`], [`an_issued_token_outlives_a_deletion`] |
//! | an empty batch changes nothing | [`an_empty_batch_changes_nothing`] |
//! | an acknowledged append is found by every later load | [`writes_are_read_at_once`], [`both_stores_see_each_others_writes_at_once`], [`what_was_acknowledged_is_found_when_reopened`] |
//! | branches, and ranges along them | [`a_branch_goes_from_its_parent`], [`an_older_branch_is_read_in_every_view`], [`branches_are_listed_by_their_tips`], [`parent_is_part_of_batch_identity`], [`a_log_is_read_in_pages`] |
//! | the open turn is whole | [`open_turn_is_reported_whole`], [`the_open_turn_is_that_of_the_branch`] |
//! | what cannot be read back is refused; all else survives | [`too_deep_entry_is_refused`], [`unreadable_entry_is_refused`], [`every_kind_of_message_survives`], [`json_of_all_sorts_survives`] |
//! | damage stays where it is | [`a_damaged_entry_harms_no_other`], [`batch_is_recognized_by_its_content`] |
//! | a dropped append is applied whole, or never | [`dropped_append_is_applied_completely_or_never`] |
//! | deletion, isolation, lists | [`nothing_of_a_deleted_conversation_returns`], [`a_deletion_is_never_read_partially`], [`keys_of_all_sorts_share_nothing`], [`list_is_paged_in_order`] |
//! | one turn holds a conversation, for its time | [`a_conversation_is_held_by_one_turn`], [`a_lease_ends_with_its_time`], [`a_held_conversation_need_not_exist`], [`extreme_tokens_and_durations_are_exact`] |
//! | a lease is valid until it passes on | [`an_ended_lease_is_valid_until_it_passes_on`], [`a_lease_takes_the_place_of_another`] |
//! | waiting turns have an order | [`waiting_turns_get_the_lease_in_order`], [`a_place_in_the_queue_ends_with_its_time`], [`a_takeover_passes_waiting_turns`], [`a_takeover_passes_no_turn_that_waited_long`] |
//!
//! Each clause becomes a test on several threads of a tokio runtime. So the crate that uses the macro
//! needs tokio with `macros` and `rt-multi-thread`. A clause that has not ended after five minutes fails.
//!
//! Some clauses need more than a store, and are called by tests that provide it:
//! - Tests that can damage stored data call [`a_damaged_entry_harms_no_other`] and
//!   [`batch_is_recognized_by_its_content`].
//! - Tests of a store that outlives its process call [`what_was_acknowledged_is_found_when_reopened`]. A store that
//!   never commits to its disk fails only there.
//! - Tests of a store with leases call [`a_takeover_passes_no_turn_that_waited_long`], which takes ten seconds.
//! - Tests that can open two stores on the same data call [`both_stores_see_each_others_writes_at_once`] and
//!   [`writers_at_two_stores_lose_nothing`].
//! - [`law_m3`] runs some of the other clauses again under the name of a law.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a clause fails by panicking"
)]

/// Checks that an operation is refused with this error.
macro_rules! refused {
    ($asked:expr, $error:pat $(if $guard:expr)?) => {
        refused!($asked, $error $(if $guard)?, "it is not refused so")
    };
    ($asked:expr, $error:pat $(if $guard:expr)?, $($why:tt)+) => {
        let asked = $asked.await;
        assert!(matches!(asked, Err($error) $(if $guard)?), "{}: {asked:?}", format_args!($($why)+));
    };
}

mod appends;
mod branches;
mod conversations;
mod damage;
mod entries;
mod equality;
mod leases;
mod shared_data;

use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ConversationKey, FinishReason, Message, TurnEnd, TurnId};
use conversation_store::{
    Batch, BatchKey, ConversationStore, Entry, EntryId, EntryKind, NewEntry, ReadRange, Version,
};
use tokio::time::timeout;

pub use appends::*;
pub use branches::*;
pub use conversations::*;
pub use damage::*;
pub use entries::*;
pub use equality::*;
pub use leases::*;
pub use shared_data::*;

/// Runs every clause of the module [`store`](mod@crate::store) on a store, each as a test.
#[macro_export]
macro_rules! store_conformance {
    ($make_store:expr) => {
        $crate::store_conformance! { @tests $make_store;
            every_kind_of_message_survives
            rounds_survive
            texts_of_all_sorts_survive
            json_of_all_sorts_survives
            too_deep_entry_is_refused
            unreadable_entry_is_refused
            keys_of_all_sorts_share_nothing
            batch_is_never_read_partially
            a_deletion_is_never_read_partially
            a_long_log_keeps_its_order
            keys_of_batches_are_compared_whole
            same_key_with_other_content_is_refused
            key_is_checked_before_version
            wrong_version_is_a_conflict
            versions_have_no_gaps_under_eight_writers
            one_of_concurrent_starts_succeeds
            numbers_beyond_all_bounds_are_typed_errors
            writes_are_read_at_once
            open_turn_is_reported_whole
            nothing_of_a_deleted_conversation_returns
            a_used_fence_outlives_a_deletion
            another_last_turn_is_refused
            batch_refusals_are_reported_in_fixed_order
            an_empty_batch_changes_nothing
            list_is_paged_in_order
            page_may_begin_after_key_of_another_tenant
            dropped_append_is_applied_completely_or_never
            a_log_is_read_in_pages
            a_branch_goes_from_its_parent
            an_older_branch_is_read_in_every_view
            branches_are_listed_by_their_tips
            the_open_turn_is_that_of_the_branch
            a_parent_must_exist
            parent_is_part_of_batch_identity
            a_conversation_is_held_by_one_turn
            a_lease_takes_the_place_of_another
            a_lease_ends_with_its_time
            an_ended_lease_is_valid_until_it_passes_on
            a_held_conversation_need_not_exist
            extreme_tokens_and_durations_are_exact
            an_issued_token_outlives_a_deletion
            one_concurrent_request_gets_the_lease
            waiting_turns_get_the_lease_in_order
            a_place_in_the_queue_ends_with_its_time
            a_takeover_passes_waiting_turns
            it_answers_as_the_store_in_memory_does
        }
    };
    (@tests $make_store:expr; $($clause:ident)*) => {$(
        #[::tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $clause() {
            let clause = $crate::store::$clause(::std::sync::Arc::new($make_store));
            $crate::store::within_limit(clause).await;
        }
    )*};
}

type Store = Arc<dyn ConversationStore>;

/// Runs a clause. A store on which it does not end fails it.
#[doc(hidden)]
pub async fn within_limit(clause: impl Future<Output = ()>) {
    let ended = timeout(LIMIT, clause).await;
    assert!(
        ended.is_ok(),
        "the clause has not ended after {LIMIT:?}: an operation of the store never returns"
    );
}

/// The time of one clause, far above what a slow server needs.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs the clauses that make up law M3, so that a store's test can carry its name.
pub async fn law_m3(store: Store) {
    dropped_append_is_applied_completely_or_never(Arc::clone(&store)).await;
    same_key_with_other_content_is_refused(Arc::clone(&store)).await;
    key_is_checked_before_version(Arc::clone(&store)).await;
    wrong_version_is_a_conflict(Arc::clone(&store)).await;
    a_used_fence_outlives_a_deletion(Arc::clone(&store)).await;
    another_last_turn_is_refused(Arc::clone(&store)).await;
    batch_refusals_are_reported_in_fixed_order(Arc::clone(&store)).await;
    an_empty_batch_changes_nothing(Arc::clone(&store)).await;
    a_lease_takes_the_place_of_another(Arc::clone(&store)).await;
    an_issued_token_outlives_a_deletion(Arc::clone(&store)).await;
    versions_have_no_gaps_under_eight_writers(store).await;
}

/// Creates a batch of user messages, one entry per text.
pub fn said(turn: &str, round: u32, texts: &[&str]) -> Batch {
    let turn = TurnId::new(turn).unwrap();
    let entry = |text: &&str| NewEntry::new(turn.clone(), EntryKind::Message(Message::user(*text)));
    Batch::new(BatchKey::new(turn.clone(), round, "said"), texts.iter().map(entry).collect())
}

/// Creates a batch that ends a turn.
pub fn ended(turn: &str, round: u32) -> Batch {
    let turn = TurnId::new(turn).unwrap();
    let end = EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop));
    Batch::new(BatchKey::new(turn.clone(), round, "ended"), vec![NewEntry::new(turn, end)])
}

/// Writes a conversation of `entries` entries, to measure what reading its end costs: turns of three messages and an
/// end, and a last turn of `last_turn` entries.
pub async fn write_long(store: &dyn ConversationStore, key: &ConversationKey, entries: u32, last_turn: u32) {
    let mut written = Vec::new();
    for number in 0..(entries - last_turn) / 4 {
        let turn = format!("t{number}");
        written.extend(said(&turn, 0, &["a question", "an answer of some length", "thanks"]).entries);
        written.extend(ended(&turn, 1).entries);
    }
    written.extend(said("last", 0, &vec!["x"; usize::try_from(last_turn - 1).unwrap()]).entries);
    written.extend(ended("last", 1).entries);
    let mut version = Version::EMPTY;
    for (round, part) in (0..).zip(written.chunks(2_000)) {
        let mut batch = said("writer", round, &[]);
        batch.entries = part.to_vec();
        version = store.append(key, version, batch).await.unwrap();
    }
    assert_eq!(version.0, u64::from(entries));
}

/// Forks a conversation `times` times, each time after the turn before the last one.
pub async fn fork_near_the_end(store: &dyn ConversationStore, key: &ConversationKey, times: u32) {
    for round in 0..times {
        let read = store.load(key, ReadRange::LastTurns(2)).await.unwrap();
        let before = read.entries.iter().position(|entry| entry.turn != read.entries[0].turn).unwrap();
        let parent = EntryId(read.entries[before - 1].seq);
        let mut batch = said(&format!("b{round}"), 0, &["again", "an answer"]).with_parent(parent);
        batch.entries.extend(ended(&format!("b{round}"), 1).entries);
        store.append(key, read.version, batch).await.unwrap();
    }
}

fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().filter_map(|entry| entry.kind.as_message()).map(Message::text).collect()
}

fn new_key() -> ConversationKey {
    ConversationKey::new(&new_name()).unwrap()
}

/// Returns a name that no other test uses, on any server.
fn new_name() -> String {
    String::from(TurnId::random())
}
