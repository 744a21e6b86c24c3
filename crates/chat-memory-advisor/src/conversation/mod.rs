//! `Registry`: what this process knows of each conversation: who runs in it, and what is still to be written or
//! released. It also reads conversations: a larger part until it shows enough.

pub(crate) mod hold;
pub(crate) mod unfinished;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use advisor_core::{ConversationKey, Error, ErrorKind, TurnId};
use conversation_store::{
    Batch, ConversationStore, Entry, EntryId, EntryKind, FencingToken, ReadRange, Snapshot, StoreError,
    Version,
};
use dashmap::DashMap;
use tokio::time::timeout;

use crate::conversation::hold::Lock;
use crate::conversation::unfinished::UnfinishedTurn;
use crate::transcript::summary::{LONGEST_SUMMARY, UnwrittenSummary};
use crate::transcript::window::Measure;

/// The conversations of this process. One is removed when nothing is known of it any more.
///
/// Each operation is atomic for its conversation, and no guard of the map leaves this type. What is kept is bounded
/// in bytes for each [`Purpose`].
pub(crate) struct Registry {
    conversations: DashMap<ConversationKey, Conversation>,
    /// The bytes that are kept for each purpose, and their limits.
    kept: [AtomicUsize; 3],
    most: [usize; 3],
    numbers: AtomicU64,
}

/// A purpose for which something is kept after its turn, with a limit of its own.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// Turns that stopped before their end was written. Beyond the limit, they are kept without their texts, then not
    /// at all.
    Unfinished,
    /// Leases that may be held in the store. Beyond the limit, they are forgotten.
    Leases,
    /// Summaries. Beyond the limit, none is made.
    Summaries,
}

/// What this process knows of a conversation.
#[derive(Default)]
struct Conversation {
    lock: Lock,
    /// The turns that stopped before their end was written.
    unfinished: Vec<UnfinishedTurn>,
    lease: HeldLease,
    /// A summary that is not written yet.
    summary: Option<UnwrittenSummary>,
    /// Whether a summary is being made.
    is_summarized: bool,
}

/// The lease of a conversation, as far as this process knows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldLease {
    /// The fencing token of the running turn; or of the last one, if its lease could not be released.
    pub(crate) token: Option<FencingToken>,
    /// Turns that requested the lease and received no answer; the store may have granted it.
    pub(crate) unanswered_requests: Vec<TurnId>,
}

/// The limits of what is kept, in bytes.
const MOST: [usize; 3] = [64 << 20, 8 << 20, 8 << 20];

/// The bytes of an unfinished turn or a kept fencing token without texts, including the slot of its conversation.
const OVERHEAD: usize = 128;

/// The number of entries that are searched at once.
const PAGE: usize = 256;

/// The factor by which a read grows if it does not show enough.
const GROWTH: usize = 4;

impl Default for Registry {
    fn default() -> Self {
        Self::with_most(MOST)
    }
}

impl Registry {
    fn with_most(most: [usize; 3]) -> Self {
        Self { conversations: DashMap::new(), kept: Default::default(), most, numbers: AtomicU64::new(0) }
    }

    /// Changes what is known of a conversation.
    fn change<R>(&self, key: &ConversationKey, change: impl FnOnce(&mut Conversation) -> R) -> R {
        let mut known = self.conversations.entry(key.clone()).or_default();
        let before = known.weights();
        let changed = change(&mut known);
        for ((kept, before), after) in self.kept.iter().zip(before).zip(known.weights()) {
            kept.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        }
        drop(known);
        self.conversations.remove_if(key, |_, known| known.is_unused());
        changed
    }

    /// Reads what is known of a conversation, if anything is.
    fn read<R>(&self, key: &ConversationKey, read: impl FnOnce(&Conversation) -> R) -> Option<R> {
        self.conversations.get(key).map(|known| read(&known))
    }

    /// Returns the room for further bytes; `None` if the limit is exceeded.
    fn room(&self, purpose: Purpose) -> Option<usize> {
        let place = purpose as usize;
        self.most.get(place)?.checked_sub(self.kept.get(place)?.load(Ordering::Relaxed))
    }

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

impl Conversation {
    fn is_unused(&self) -> bool {
        self.lock.is_free() && self.weights() == [0; 3]
    }

    /// Returns the bytes that are kept for each purpose. A summary that is being made counts as the longest one.
    fn weights(&self) -> [usize; 3] {
        let leases = usize::from(self.lease.token.is_some()) + self.lease.unanswered_requests.len();
        let text = self.summary.as_ref().map(|summary| OVERHEAD + summary.summary.text.len());
        let made = self.is_summarized.then_some(OVERHEAD + LONGEST_SUMMARY);
        let unfinished = self.unfinished.iter().map(|turn| turn.bytes).sum();
        [unfinished, leases * OVERHEAD, text.unwrap_or_default() + made.unwrap_or_default()]
    }
}

/// Reading.
impl Registry {
    /// Returns the range to read first for a window: everything if an unfinished turn has an end that replaces one in
    /// the log.
    pub(crate) fn first_range(&self, key: &ConversationKey, measure: &Measure) -> ReadRange {
        let is_replaced = self.unfinished_in(key).iter().any(UnfinishedTurn::overrides);
        if is_replaced { ReadRange::All } else { measure.first_range() }
    }

    /// Reads a branch: the one up to `tip`, or the one written last. `see` gets this range of it, and larger ones, until
    /// it returns that it has seen enough, or has seen everything.
    ///
    /// # Errors
    /// Those of the store, for a turn whose conversation cannot be loaded.
    pub(crate) async fn load<T>(
        &self,
        store: &dyn ConversationStore,
        key: &ConversationKey,
        tip: Option<EntryId>,
        mut range: ReadRange,
        mut see: impl FnMut(Snapshot) -> (T, bool),
    ) -> Result<T, Error> {
        loop {
            let snapshot = match tip {
                None => read_in_time(store.load(key, range)).await,
                Some(tip) => read_in_time(store.load_branch(key, tip, range)).await,
            };
            let snapshot = snapshot.map_err(not_loaded)?;
            let damaged = damaged_entries(&snapshot);
            let larger = match range {
                ReadRange::LastEntries(count) => ReadRange::LastEntries(count.saturating_mul(GROWTH)),
                ReadRange::LastTurns(count) => ReadRange::LastTurns(count.saturating_mul(GROWTH)),
                ReadRange::All => ReadRange::All,
            };
            // Damaged data may lack their beginning, so a range may not grow until the first entry is read.
            let is_all = snapshot.is_whole() || larger == range;
            match see(snapshot) {
                (seen, is_enough) if is_enough || is_all => {
                    warn_of_damage(key, damaged);
                    return Ok(seen);
                }
                _ => range = larger,
            }
        }
    }
}

/// The turns of this process that stopped before their end was written.
impl Registry {
    /// Returns the unfinished turns of a conversation.
    pub(crate) fn unfinished_in(&self, key: &ConversationKey) -> Vec<UnfinishedTurn> {
        self.read(key, |known| known.unfinished.clone()).unwrap_or_default()
    }

    /// Returns all unfinished turns, each with its conversation.
    pub(crate) fn all_unfinished(&self) -> Vec<(ConversationKey, UnfinishedTurn)> {
        let mut all = Vec::new();
        for known in &self.conversations {
            all.extend(known.unfinished.iter().map(|turn| (known.key().clone(), turn.clone())));
        }
        all
    }

    /// Checks whether the end of a turn is still to be written. A turn without a number did not fit into the limit; it
    /// counts as unfinished unless it runs again.
    pub(crate) fn is_unfinished(&self, key: &ConversationKey, turn: &UnfinishedTurn) -> bool {
        let is_known = |known: &Conversation| match turn.number {
            Some(_) => known.unfinished.iter().any(|other| other.number == turn.number),
            None => !known.lock.is_used_by(&turn.turn),
        };
        self.read(key, is_known).unwrap_or(turn.number.is_none())
    }

    /// Registers a turn and replaces its earlier registration. If its texts exceed the limit, it is registered
    /// without them. If it does not fit at all, it is closed as after a crash, unless the caller writes the
    /// returned value at once.
    pub(crate) fn register(&self, key: &ConversationKey, turn: UnfinishedTurn) -> UnfinishedTurn {
        let (number, id) = (self.next_number(), turn.turn.clone());
        let (registered, is_cut) = self.change(key, |conversation| {
            let turns = &mut conversation.unfinished;
            let replaced = turns.iter().find(|known| known.turn == turn.turn);
            let (token, freed) = replaced.map_or((None, 0), |known| (known.token, known.bytes));
            turns.retain(|known| known.turn != turn.turn);
            let room = self.room(Purpose::Unfinished).unwrap_or_default().saturating_add(freed);
            let turn =
                UnfinishedTurn { token: turn.token.max(token), number: Some(number), ..turn }.weighed();
            let is_cut = turn.bytes > room;
            let kept = if is_cut { turn.clone().without_texts() } else { turn.clone() };
            if kept.bytes > room {
                return (UnfinishedTurn { number: None, ..turn }, is_cut);
            }
            turns.push(kept);
            (turn, is_cut)
        });
        // A `tracing` subscriber may use this memory, so nothing is locked here.
        if is_cut {
            tracing::warn!(
                conversation = %key,
                turn = %id,
                "too many texts of dropped turns wait to be written, and the text of this turn is lost if it is not written at once; give the client a spawner"
            );
        }
        registered
    }

    /// Forgets those unfinished turns of a conversation that are written by now, or continue.
    pub(crate) fn forget(&self, key: &ConversationKey, is_done: impl Fn(&UnfinishedTurn) -> bool) {
        self.change(key, |known| known.unfinished.retain(|turn| !is_done(turn)));
    }
}

/// The turns that run in this process, and the leases that it may hold in the store.
impl Registry {
    /// Returns the turn that runs in a conversation.
    pub(crate) fn running_in(&self, key: &ConversationKey) -> Option<TurnId> {
        self.read(key, |known| Some(known.lock.holder.as_ref()?.turn_id().clone())).flatten()
    }

    pub(crate) fn lease(&self, key: &ConversationKey) -> HeldLease {
        self.read(key, |known| known.lease.clone()).unwrap_or_default()
    }

    pub(crate) fn change_lease(&self, key: &ConversationKey, change: impl FnOnce(&mut HeldLease)) {
        self.change(key, |known| change(&mut known.lease));
    }

    /// Notes the fencing token of a new lease, which also applies to the unfinished turns of this conversation.
    pub(crate) fn note_lease(&self, key: &ConversationKey, token: FencingToken) {
        self.change(key, |known| {
            known.lease.token = Some(token);
            known.unfinished.iter_mut().for_each(|turn| turn.token = Some(token));
        });
    }

    /// Notes that the store has released the lease with this fencing token.
    pub(crate) fn note_released(&self, key: &ConversationKey, token: FencingToken) {
        self.change_lease(key, |lease| _ = lease.token.take_if(|held| *held == token));
    }

    /// Checks whether a turn of this process has the conversation, waits for it, or had it after `turn`.
    pub(crate) fn is_used_after(&self, key: &ConversationKey, turn: &UnfinishedTurn) -> bool {
        let later = |other: &UnfinishedTurn| other.number == turn.number && other.token > turn.token;
        let is_used = |known: &Conversation| !known.lock.is_free() || known.unfinished.iter().any(later);
        self.read(key, is_used).unwrap_or_default()
    }

    /// Returns the fencing tokens that no running turn needs, each with its conversation.
    pub(crate) fn idle_tokens(&self) -> Vec<(ConversationKey, FencingToken)> {
        let idle = self.conversations.iter().filter(|known| known.lock.holder.is_none());
        idle.filter_map(|known| Some((known.key().clone(), known.lease.token?))).collect()
    }

    /// Forgets the lease of a conversation if all leases exceed the limit and no turn runs under it. This is safe: a
    /// lease expires.
    fn evict_lease(&self, key: &ConversationKey) {
        if self.room(Purpose::Leases).is_none() {
            self.change(key, |known| {
                if known.lock.holder.is_none() {
                    known.lease = HeldLease::default();
                }
            });
        }
    }
}

/// The summaries that are being made or wait to be written.
impl Registry {
    /// Returns the summary that is not written yet.
    pub(crate) fn unwritten_summary(&self, key: &ConversationKey) -> Option<UnwrittenSummary> {
        self.read(key, |known| known.summary.clone()).flatten()
    }

    /// Notes that a summary is being made. Returns `false` if one is being made already, or if there is no room to
    /// keep another one.
    pub(crate) fn start_summary(&self, key: &ConversationKey) -> bool {
        let has_room = self.room(Purpose::Summaries) >= Some(OVERHEAD + LONGEST_SUMMARY);
        has_room && self.change(key, |known| !std::mem::replace(&mut known.is_summarized, true))
    }

    /// Notes that no summary is being made any more.
    pub(crate) fn stop_summary(&self, key: &ConversationKey) {
        self.change(key, |known| known.is_summarized = false);
    }

    /// Keeps a summary that was made until it is written.
    ///
    /// If all summaries exceed the limit, drops it. That happens only after concurrent starts took the same room.
    pub(crate) fn keep_summary(&self, key: &ConversationKey, summary: UnwrittenSummary) {
        self.change(key, |known| (known.summary, known.is_summarized) = (Some(summary), false));
        if self.room(Purpose::Summaries).is_none() {
            self.change(key, |known| known.summary = None);
        }
    }

    /// Removes a summary that covers no entry after `until`: a summary that covers as much is written.
    pub(crate) fn note_summary_written(&self, key: &ConversationKey, until: u64) {
        self.change(key, |known| {
            known.summary.take_if(|unwritten| unwritten.summary.until <= until);
        });
    }
}

/// Returns the place of the first damaged entry of a snapshot, if there is one, and the number of them.
fn damaged_entries(snapshot: &Snapshot) -> Option<(u64, usize)> {
    // Both end with the same entry.
    let open = snapshot.open_turn.as_ref().filter(|open| open.len() > snapshot.entries.len());
    let entries = open.unwrap_or(&snapshot.entries);
    let mut damaged = entries.iter().filter(|entry| matches!(entry.kind, EntryKind::Corrupt(_)));
    damaged.next().map(|first| (first.seq, 1 + damaged.count()))
}

/// Warns of damaged entries. Their content is not logged.
fn warn_of_damage(key: &ConversationKey, damaged: Option<(u64, usize)>) {
    if let Some((seq, count)) = damaged {
        tracing::warn!(
            conversation = %key,
            seq,
            count,
            "entries of a conversation, of which this is the first, cannot be read; they stay in the store and are not sent to the model"
        );
    }
}

/// The longest time of an operation of the store.
const LONGEST: Duration = Duration::from_secs(30);

const SILENT: &str = "the store did not answer within thirty seconds";

/// Runs an operation of the store that has no effect. One that takes longer than 30 seconds is dropped.
pub(crate) async fn read_in_time<T>(
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(LONGEST, work).await.unwrap_or_else(|_| Err(StoreError::unavailable(SILENT)))
}

/// Runs an operation of the store that may have taken effect when it is dropped after 30 seconds.
pub(crate) async fn change_in_time<T>(
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(LONGEST, work).await.unwrap_or_else(|_| Err(StoreError::outcome_unknown(SILENT)))
}

/// Returns the error of a turn whose conversation could not be loaded for this reason.
pub(crate) fn not_loaded(error: StoreError) -> Error {
    match error {
        StoreError::Gone | StoreError::Corrupt { .. } | StoreError::NoSuchEntry { .. } => error.into(),
        error => Error::new(ErrorKind::Store, "the conversation could not be loaded").with_source(error),
    }
}

/// Appends a batch, and retries once if the outcome is unknown. The batch's key makes the retry safe.
pub(crate) async fn append_once(
    store: &dyn ConversationStore,
    key: &ConversationKey,
    expected: Version,
    batch: Batch,
) -> Result<Version, StoreError> {
    let unknown = match change_in_time(store.append(key, expected, batch.clone())).await {
        Err(unknown @ StoreError::OutcomeUnknown { .. }) => unknown,
        outcome => return outcome,
    };
    match change_in_time(store.append(key, expected, batch)).await {
        // The retry wrote nothing, but the first attempt may have.
        Err(StoreError::Unavailable { .. }) => Err(unknown),
        outcome => outcome,
    }
}

/// Searches the log after an entry, on all branches.
pub(crate) async fn find_in_log<T>(
    store: &dyn ConversationStore,
    key: &ConversationKey,
    mut after: EntryId,
    find: impl Fn(&Entry) -> Option<T>,
) -> Result<Option<T>, Error> {
    loop {
        let page = read_in_time(store.read(key, after, PAGE)).await.map_err(not_loaded)?;
        let (found, last) = (page.iter().find_map(&find), page.get(PAGE - 1));
        match last.filter(|_| found.is_none()) {
            Some(last) => after = EntryId(last.seq),
            None => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use advisor_core::{Turn, TurnEnd};
    use conversation_store::{Batch, BatchKey, InMemoryStore, NewEntry, Summary, Version};
    use futures::FutureExt;

    use super::*;
    use crate::conversation::hold::{Hold, TurnLease};
    use crate::conversation::unfinished::StoppedWhile;
    use crate::tests::{turn, user};

    fn silent(name: &str) -> UnfinishedTurn {
        UnfinishedTurn::new(turn(name), Version::EMPTY, Vec::new())
    }

    fn key() -> ConversationKey {
        ConversationKey::new("c").unwrap()
    }

    /// Takes the lock for a turn.
    fn hold(registry: &Arc<Registry>, key: &ConversationKey, name: &str) -> Hold {
        let (store, turn) = (Arc::new(InMemoryStore::new()), Turn::new(turn(name)));
        let lease = TurnLease::new(store, registry, key.clone(), &turn, Duration::from_secs(30));
        lease.acquire(None).now_or_never().unwrap().unwrap()
    }

    #[test]
    fn law_k3_run_without_room_is_closed_unless_turn_reruns() {
        let registry = Arc::new(Registry::with_most([0; 3]));
        let key = key();
        let refused = registry.register(&key, silent("a"));
        assert!(registry.unfinished_in(&key).is_empty() && registry.is_unfinished(&key, &refused));
        let _again = hold(&registry, &key, "a");
        assert!(!registry.is_unfinished(&key, &refused));
    }

    #[test]
    fn law_k3_forgetting_one_run_keeps_other_unfinished_run() {
        let registry = Registry::default();
        let key = key();
        let first = registry.register(&key, silent("a"));
        let second = registry.register(&key, silent("a"));
        registry.forget(&key, |known| known.number == first.number);
        assert!(!registry.is_unfinished(&key, &first) && registry.is_unfinished(&key, &second));
    }

    #[test]
    fn law_r1_bounded_leases_and_summaries_never_evict_shown_text() {
        let registry = Arc::new(Registry::with_most([1 << 20, 0, 0]));
        let key = key();
        let running = hold(&registry, &key, "a");
        registry.register(&key, UnfinishedTurn { stopped: StoppedWhile::AfterEnd, ..silent("b") });
        registry.note_lease(&key, FencingToken(1));
        running.release();
        assert!(registry.lease(&key).token.is_none(), "evicted once no turn runs");
        let running = hold(&registry, &key, "a");
        registry.note_lease(&key, FencingToken(1));
        registry.evict_lease(&key);
        assert!(registry.lease(&key).token.is_some() && registry.idle_tokens().is_empty());
        drop(running);
        assert!(registry.lease(&key).token.is_none());
        assert_eq!(registry.unfinished_in(&key)[0].stopped, StoppedWhile::AfterEnd);
    }

    #[test]
    fn beginning_of_dropped_turn_is_kept_and_conversation_freed() {
        let registry = Arc::new(Registry::default());
        let key = key();
        let mut first = hold(&registry, &key, "a");
        first.unconfirmed = Some(silent("a"));
        drop(first);
        registry.register(&key, silent("b"));
        assert_eq!(registry.unfinished_in(&key).len(), 2);
        let _running = hold(&registry, &key, "c");
    }

    #[test]
    fn law_k3_fenced_text_stays_for_later_turn_here() {
        let registry = Arc::new(Registry::default());
        let (key, other) = (key(), ConversationKey::new("d").unwrap());
        let fenced = UnfinishedTurn { token: Some(FencingToken(1)), ..silent("a") };
        let fenced = registry.register(&key, fenced);
        assert!(!registry.is_used_after(&key, &fenced), "the turn that holds the lease is elsewhere");
        {
            let _running = hold(&registry, &key, "b");
            assert!(registry.is_used_after(&key, &fenced));
            assert!(!registry.is_used_after(&other, &fenced));
        }
        assert!(!registry.is_used_after(&key, &fenced));
        registry.note_lease(&key, FencingToken(2));
        assert!(registry.is_used_after(&key, &fenced), "a turn had the lease and has released it");
        let newer = registry.unfinished_in(&key).remove(0);
        assert!(!registry.is_used_after(&key, &newer));
        let unknown = UnfinishedTurn { number: None, ..fenced };
        assert!(!registry.is_used_after(&key, &unknown), "another run has the token");
    }

    #[test]
    fn law_k3_unconfirmed_turn_has_the_token_of_its_lease() {
        let registry = Arc::new(Registry::default());
        let key = key();
        let mut running = hold(&registry, &key, "a");
        running.unconfirmed = Some(UnfinishedTurn { token: Some(FencingToken(1)), ..silent("a") });
        drop(running);
        assert_eq!(registry.unfinished_in(&key)[0].token, None, "the turn has no lease");
    }

    #[test]
    fn law_r1_unfinished_turns_are_bounded() {
        let registry = Registry::with_most([2100, 0, 0]);
        let with_text = |name: &str| {
            let partial = "x".repeat(500).into();
            UnfinishedTurn { end: TurnEnd::Interrupted { partial }, ..silent(name) }
        };
        let key = |name: &str| ConversationKey::new(name).unwrap();
        for name in ["a", "b", "c", "c", "d", "e"] {
            registry.register(&key(name), with_text(name));
        }
        let texts =
            |name: &str| registry.unfinished_in(&key(name)).iter().map(|turn| turn.bytes).sum::<usize>();
        assert!(texts("c") > 500 && texts("d") < 500, "a turn that does not fit is kept without its text");
        assert_eq!(registry.unfinished_in(&key("d")).len(), 1);
        assert!(registry.read(&key("e"), |_| ()).is_none(), "or leaves no trace");
        registry.forget(&key("a"), |known| known.turn == turn("a"));
        registry.register(&key("e"), with_text("e"));
        assert_eq!(registry.unfinished_in(&key("e")).len(), 1, "a written turn frees its space");
        for name in ["b", "c", "d", "e"] {
            registry.forget(&key(name), |_| true);
        }
        assert!(registry.conversations.is_empty());
        assert_eq!(registry.room(Purpose::Unfinished), Some(2100));
    }

    #[test]
    fn law_k3_reregistered_turn_keeps_highest_fence() {
        let registry = Registry::default();
        let key = ConversationKey::new("c").unwrap();
        registry.register(&key, UnfinishedTurn { token: Some(FencingToken(7)), ..silent("a") });
        assert_eq!(registry.register(&key, silent("a")).token, Some(FencingToken(7)));
    }

    #[test]
    fn law_r1_unfinished_turn_may_fill_the_limit() {
        let key = ConversationKey::new("c").unwrap();
        let with_text =
            UnfinishedTurn { end: TurnEnd::Interrupted { partial: "so far".into() }, ..silent("a") };
        for (most, kept) in [
            (with_text.clone().weighed().bytes, Some(with_text.end.clone())),
            (silent("a").weighed().bytes, Some(silent("a").end)),
            (silent("a").weighed().bytes - 1, None),
        ] {
            let registry = Registry::with_most([most, 0, 0]);
            let registered = registry.register(&key, with_text.clone());
            assert_eq!(registered.number.is_some(), kept.is_some());
            assert_eq!(registry.unfinished_in(&key).pop().map(|turn| turn.end), kept);
        }
    }

    #[test]
    fn law_r1_leases_without_turn_are_bounded() {
        let registry = Arc::new(Registry::with_most([0, 10 * OVERHEAD, 0]));
        let key = |name: usize| ConversationKey::new(&format!("c{name}")).unwrap();
        for name in 0..100 {
            registry.note_lease(&key(name), FencingToken(1));
            registry.change_lease(&key(name), |lease| lease.unanswered_requests.push(turn("t")));
            registry.evict_lease(&key(name));
        }
        assert!(registry.conversations.len() <= 11, "{}", registry.conversations.len());
        let _running = hold(&registry, &key(99), "t");
        registry.note_lease(&key(99), FencingToken(1));
        registry.evict_lease(&key(99));
        assert!(registry.lease(&key(99)).token.is_some(), "that of a running turn stays");
        let registry = Registry::with_most([0, OVERHEAD, 0]);
        registry.note_lease(&key(0), FencingToken(1));
        registry.evict_lease(&key(0));
        assert!(registry.lease(&key(0)).token.is_some(), "up to the limit, all stay");
    }

    #[test]
    fn lease_is_released_by_its_token() {
        let (registry, key) = (Registry::default(), key());
        registry.change_lease(&key, |lease| lease.unanswered_requests = vec![turn("a"), turn("b")]);
        registry.note_lease(&key, FencingToken(2));
        registry.note_released(&key, FencingToken(1));
        assert_eq!(registry.lease(&key).token, Some(FencingToken(2)), "another lease was released");
        registry.note_released(&key, FencingToken(2));
        assert_eq!(registry.lease(&key).token, None);
        assert_eq!(registry.lease(&key).unanswered_requests, [turn("a"), turn("b")]);
        registry.change_lease(&key, |lease| lease.unanswered_requests.clear());
        assert!(registry.conversations.is_empty() && registry.room(Purpose::Leases) == Some(MOST[1]));
    }

    #[test]
    fn law_r1_unwritten_summaries_are_bounded() {
        let text = "they talked".repeat(1000);
        let most = OVERHEAD + LONGEST_SUMMARY + 10 * (OVERHEAD + text.len());
        let registry = Registry::with_most([0, 0, most]);
        let key = |name: usize| ConversationKey::new(&format!("c{name}")).unwrap();
        let unwritten = |name| registry.unwritten_summary(&key(name));
        let mut made = 0;
        for name in 0..100 {
            if registry.start_summary(&key(name)) {
                made += 1;
                assert!(!registry.start_summary(&key(name)), "one at a time");
                let summary = UnwrittenSummary {
                    summary: Summary { until: 3, text: text.as_str().into() },
                    turn: turn("t"),
                };
                registry.keep_summary(&key(name), summary);
                registry.stop_summary(&key(name));
                assert!(unwritten(name).is_some(), "what was made is kept");
            }
            assert!(registry.room(Purpose::Summaries).is_some());
        }
        assert_eq!((made, registry.conversations.len()), (11, 11), "none is made that would be dropped");
        registry.note_summary_written(&key(0), 2);
        assert!(unwritten(0).is_some(), "another one was written");
        registry.note_summary_written(&key(0), 3);
        assert!(unwritten(0).is_none());
    }

    #[tokio::test]
    async fn search_of_log_reads_all_pages() {
        let (store, key) = (InMemoryStore::new(), ConversationKey::new("c").unwrap());
        let entries =
            (0..2 * PAGE + 1).map(|number| NewEntry::new(turn("t"), user(&number.to_string()).into()));
        let batch = Batch::new(BatchKey::for_input(turn("t")), entries.collect());
        store.append(&key, Version(0), batch).await.unwrap();
        let first_after = |after: u64, least: u64| {
            find_in_log(&store, &key, EntryId(after), move |entry| {
                Some(entry.seq).filter(|seq| *seq >= least)
            })
        };
        let all = 2 * PAGE as u64 + 1;
        assert_eq!(first_after(0, all).await.unwrap(), Some(all), "it is on the third page");
        assert_eq!(first_after(3, 1).await.unwrap(), Some(4), "the first one behind the given entry");
        assert_eq!(first_after(0, all + 1).await.unwrap(), None);
        assert_eq!(first_after(PAGE as u64 + 1, all + 1).await.unwrap(), None, "the last page is full");
    }
}
