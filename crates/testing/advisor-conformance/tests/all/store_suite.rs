//! The suite of a store passes the store in memory and catches each fault of a broken one.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use advisor_conformance::store::*;
use advisor_core::{ConversationKey, TurnId, async_trait};
use conversation_store::{
    Batch, BatchKey, ConversationStore, Entry, EntryId, EntryKind, FencingToken, InMemoryStore, Leases,
    ListOrder, NewEntry, Page, ReadRange, Result, Snapshot, StoreError, Version,
};
use futures::FutureExt;
use tokio::task::yield_now;
use tokio::time::timeout;

type Store = Arc<dyn ConversationStore>;

mod in_memory {
    advisor_conformance::store_conformance!(conversation_store::InMemoryStore::new());
}

mod leasing {
    advisor_conformance::store_conformance!(conversation_store::InMemoryStore::new().with_leases());
}

mod shared {
    // An `Arc` of a store is a store.
    advisor_conformance::store_conformance!(std::sync::Arc::new(conversation_store::InMemoryStore::new()));
}

mod derived {
    // The default methods of the trait pass, too.
    advisor_conformance::store_conformance!(super::Bare(conversation_store::InMemoryStore::new()));
}

/// A store with only the required methods.
struct Bare(InMemoryStore);

#[async_trait]
impl ConversationStore for Bare {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        self.0.load(key, range).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        self.0.read(key, after, limit).await
    }

    async fn append(&self, key: &ConversationKey, at: Version, batch: Batch) -> Result<Version> {
        self.0.append(key, at, batch).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        self.0.delete(key).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        self.0.list(page).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn law_m3_an_append_is_atomic_ordered_idempotent_and_versioned() {
    law_m3(Arc::new(InMemoryStore::new().with_leases())).await;
}

#[test]
fn every_clause_is_run_by_the_macro() {
    let list = include_str!("../../src/store/mod.rs");
    let clauses = [
        include_str!("../../src/store/entries.rs"),
        include_str!("../../src/store/appends.rs"),
        include_str!("../../src/store/branches.rs"),
        include_str!("../../src/store/conversations.rs"),
        include_str!("../../src/store/equality.rs"),
        include_str!("../../src/store/leases.rs"),
    ];
    let lines = clauses.iter().flat_map(|clauses| clauses.lines());
    for line in lines.filter_map(|line| line.strip_prefix("pub async fn ")) {
        let clause = line.split('(').next().unwrap();
        if clause == "a_takeover_passes_no_turn_that_waited_long" {
            continue;
        }
        assert!(list.lines().any(|listed| listed.trim() == clause), "{clause} is not run");
    }
}

/// A store with one fault.
struct Broken {
    inner: InMemoryStore,
    how: How,
    keys: Mutex<HashMap<(ConversationKey, BatchKey), u32>>,
    damage: Mutex<Option<(u64, Damage)>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    NotAtAll,
    ForgetsKeys,
    ChecksTheVersionFirst,
    AcceptsAnyContentForAKey,
    IgnoresTheVersion,
    WritesHalfOfWhatItRefuses,
    WritesEntryByEntry,
    BringsBackTheDeleted,
    IgnoresTenants,
    IgnoresTheRange,
    HidesTheOpenTurn,
    IgnoresTokens,
    IgnoresTheLastTurn,
    GivesLeasesToAll,
    ListsWithoutPages,
    IgnoresWherePagesBegin,
    ListsInOneOrder,
    ReadsWithoutPages,
    IgnoresParents,
    TakesAnyParent,
    ForgetsParents,
    ReadsOneBranchOnly,
    ListsOneBranchOnly,
    FailsForADamagedEntry,
    HidesADamagedEntry,
    EndsAtADamagedEntry,
    TakesWhatCannotBeRead,
    ForgetsRounds,
    FoldsCase,
    Trims,
    JoinsTenantAndConversation,
    ForgetsTokensWithTheDeleted,
    KeepsKeysOfEmptyBatches,
    LeasesNeverEnd,
    LeasesHaveNoOrder,
    CutsSteps,
    CutsRounds,
    FoldsTurns,
    OrdersNumbersByTheirLowBytes,
    KeepsForksOfTheDeleted,
    ReadsInTwoSnapshots,
}

impl Broken {
    fn renamed(&self, key: &ConversationKey) -> ConversationKey {
        let (tenant, conversation) = (key.tenant(), key.conversation());
        let (tenant, conversation): (String, String) = match self.how {
            How::IgnoresTenants => ("default".into(), conversation.into()),
            How::FoldsCase => (tenant.into(), conversation.to_lowercase()),
            How::Trims if !conversation.trim().is_empty() => (tenant.into(), conversation.trim().into()),
            How::JoinsTenantAndConversation => ("default".into(), format!("{tenant}/{conversation}")),
            How::ForgetsTokensWithTheDeleted => {
                let times = self.keys.lock().unwrap().get(&Self::deletion(key)).copied().unwrap_or_default();
                (tenant.into(), format!("{conversation} {times}"))
            }
            _ => return key.clone(),
        };
        // Joined names that are too long are not part of this test.
        ConversationKey::in_tenant(&tenant, &conversation).unwrap_or_else(|_| key.clone())
    }

    /// Returns a place in `keys` that no batch uses.
    fn deletion(key: &ConversationKey) -> (ConversationKey, BatchKey) {
        (key.clone(), BatchKey::new(TurnId::new("deletion").unwrap(), 0, ""))
    }

    /// Gives the batch a key that the store has never seen.
    fn fresh(&self, key: &ConversationKey, batch: &mut Batch) {
        let mut keys = self.keys.lock().unwrap();
        let times = keys.entry((key.clone(), batch.key.clone())).or_default();
        *times += 1;
        batch.key.step = format!("{}-{times}", batch.key.step).into();
    }
}

#[async_trait]
impl ConversationStore for Broken {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        let range = if self.how == How::IgnoresTheRange { ReadRange::All } else { range };
        let version = self.inner.load(key, ReadRange::LastEntries(0)).await?.version;
        if self.how == How::ReadsInTwoSnapshots {
            yield_now().await;
        }
        let mut read = self.damaged(self.inner.load(&self.renamed(key), range).await?)?;
        if self.how == How::ReadsInTwoSnapshots {
            read.version = version;
        }
        if self.how == How::HidesTheOpenTurn {
            read.open_turn = None;
        }
        Ok(read)
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        match self.how {
            How::ReadsOneBranchOnly => self.load(key, range).await,
            _ => self.damaged(self.inner.load_branch(key, tip, range).await?),
        }
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        let limit = if self.how == How::ReadsWithoutPages { usize::MAX } else { limit };
        let mut read = self.inner.read(key, after, limit).await?;
        match self.how {
            How::ForgetsParents => read.iter_mut().for_each(|entry| entry.parent = None),
            How::OrdersNumbersByTheirLowBytes => read.sort_by_key(|entry| entry.seq.to_le_bytes()),
            How::KeepsForksOfTheDeleted if self.keys.lock().unwrap().contains_key(&Self::deletion(key)) => {
                read.iter_mut()
                    .filter(|entry| entry.seq == 5)
                    .for_each(|entry| entry.parent = Some(EntryId(1)));
            }
            _ => {}
        }
        self.damage_in(read)
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>> {
        let tips = self.inner.branches(key).await?;
        let from = if self.how == How::ListsOneBranchOnly { tips.len().saturating_sub(1) } else { 0 };
        Ok(tips[from..].to_vec())
    }

    async fn append(&self, key: &ConversationKey, expected: Version, mut batch: Batch) -> Result<Version> {
        let key = &self.renamed(key);
        if expected == Version::EMPTY && self.inner.branches(key).await?.is_empty() {
            *self.damage.lock().unwrap() = None;
        }
        let current = self.inner.load(key, ReadRange::LastEntries(0)).await?.version;
        match self.how {
            How::ForgetsKeys => self.fresh(key, &mut batch),
            How::ChecksTheVersionFirst if current != expected => {
                return Err(StoreError::Conflict { current });
            }
            How::AcceptsAnyContentForAKey => match self.inner.append(key, expected, batch).await {
                Err(StoreError::KeyReused) => return Ok(current),
                other => return other,
            },
            How::IgnoresTheVersion => return self.inner.append(key, current, batch).await,
            How::BringsBackTheDeleted if current == Version::EMPTY => {
                return self.inner.append(key, current, batch).await;
            }
            How::WritesHalfOfWhatItRefuses if current != expected && current > Version::EMPTY => {
                self.fresh(key, &mut batch);
                batch.entries.truncate(batch.entries.len() / 2);
                self.inner.append(key, current, batch).await?;
                return Err(StoreError::Conflict { current });
            }
            How::WritesEntryByEntry => {
                let mut version = expected;
                for (part, entry) in (0..).zip(batch.entries) {
                    let key_of_part = BatchKey::new(
                        batch.key.turn.clone(),
                        batch.key.round,
                        format!("{}-{part}", batch.key.step),
                    );
                    version = self.inner.append(key, version, Batch::new(key_of_part, vec![entry])).await?;
                    yield_now().await;
                }
                return Ok(version);
            }
            How::TakesWhatCannotBeRead => {
                let unreadable = |new: &NewEntry| {
                    Batch::new(batch.key.clone(), vec![new.clone()]).written(usize::MAX).is_err()
                };
                for new in batch.entries.iter_mut().filter(|new| unreadable(new)) {
                    new.kind = EntryKind::Corrupt(serde_json::to_vec(&new.kind).unwrap());
                }
            }
            How::KeepsKeysOfEmptyBatches => {
                let place = (key.clone(), batch.key.clone());
                if batch.entries.is_empty() && current == expected {
                    self.keys.lock().unwrap().insert(place, 1);
                } else if self.keys.lock().unwrap().contains_key(&place) {
                    return Err(StoreError::KeyReused);
                }
            }
            How::CutsSteps => batch.key.step = batch.key.step.chars().take(40).collect::<String>().into(),
            How::CutsRounds => batch.key.round %= 1 << 16,
            How::FoldsTurns => {
                batch.key.turn = TurnId::new(&batch.key.turn.as_str().to_lowercase()).unwrap();
            }
            How::ForgetsRounds => {
                batch.entries.iter_mut().for_each(|new| *new = new.clone().with_round(None));
            }
            How::IgnoresTokens => batch.token = None,
            How::IgnoresTheLastTurn => batch.last_turn = None,
            How::IgnoresParents => batch.parent = None,
            How::TakesAnyParent => batch.parent = batch.parent.filter(|parent| parent.0 <= current.0),
            _ => {}
        }
        self.inner.append(key, expected, batch).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        self.inner.delete(&self.renamed(key)).await?;
        *self.keys.lock().unwrap().entry(Self::deletion(key)).or_default() += 1;
        Ok(())
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        let mut page = page.clone();
        match self.how {
            How::ListsWithoutPages => page.limit = usize::MAX,
            How::IgnoresWherePagesBegin => page.after = None,
            How::ListsInOneOrder => page.order = ListOrder::Ascending,
            _ => {}
        }
        self.inner.list(&page).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }
}

#[async_trait]
impl Leases for Broken {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
        waits: bool,
    ) -> Result<FencingToken> {
        let key = self.renamed(key);
        let never = Duration::from_secs(365 * 24 * 3600);
        let ttl = if self.how == How::LeasesNeverEnd { never } else { ttl };
        let waits = waits && self.how != How::LeasesHaveNoOrder;
        match self.inner.acquire(&key, turn, ttl, takeover_from, waits).await {
            Err(StoreError::Locked { turn, token, .. }) if self.how == How::LeasesNeverEnd => {
                Err(StoreError::Locked { turn, token, remaining: Duration::ZERO })
            }
            Err(StoreError::Locked { token, .. }) if self.how == How::GivesLeasesToAll => {
                self.inner.acquire(&key, turn, ttl, Some(token), waits).await
            }
            given => given,
        }
    }

    async fn renew(&self, key: &ConversationKey, token: FencingToken, ttl: Duration) -> Result {
        self.inner.renew(&self.renamed(key), token, ttl).await
    }

    async fn release(&self, key: &ConversationKey, token: FencingToken) -> Result {
        self.inner.release(&self.renamed(key), token).await
    }
}

impl Broken {
    fn new(how: How) -> Self {
        Self {
            inner: InMemoryStore::new().with_leases(),
            how,
            keys: Mutex::default(),
            damage: Mutex::default(),
        }
    }

    fn damage(&self, seq: u64, damage: Damage) {
        *self.damage.lock().unwrap() = Some((seq, damage));
    }

    fn damaged(&self, mut read: Snapshot) -> Result<Snapshot> {
        read.entries = self.damage_in(read.entries)?;
        read.open_turn = read.open_turn.map(|open| self.damage_in(open)).transpose()?;
        Ok(read)
    }

    /// Returns the entries as a store with a damaged entry would read them.
    fn damage_in(&self, mut entries: Vec<Entry>) -> Result<Vec<Entry>> {
        let Some((seq, damage)) = *self.damage.lock().unwrap() else { return Ok(entries) };
        let Some(place) = entries.iter().position(|entry| entry.seq == seq) else { return Ok(entries) };
        match self.how {
            How::FailsForADamagedEntry => return Err(StoreError::Corrupt { seq: Some(seq), source: None }),
            How::HidesADamagedEntry => {
                entries.remove(place);
            }
            How::EndsAtADamagedEntry => entries.truncate(place),
            _ => {
                let kind = &mut entries[place].kind;
                *kind = EntryKind::Corrupt(match damage {
                    Damage::Body(raw) => raw.into(),
                    Damage::Turn => serde_json::to_vec(kind).unwrap(),
                    Damage::Removed => Vec::new(),
                });
            }
        }
        Ok(entries)
    }
}

/// Returns whether the clause about damage fails on a store with this fault.
async fn is_caught(how: How) -> bool {
    let store = Arc::new(Broken::new(how));
    let damaging = Arc::clone(&store);
    let damage = async |_: &ConversationKey, seq, how| damaging.damage(seq, how);
    let clause = a_damaged_entry_harms_no_other(store, damage, async |_, _| {});
    AssertUnwindSafe(clause).catch_unwind().await.is_err()
}

#[tokio::test]
async fn law_m6_stores_spreading_entry_damage_are_caught() {
    assert!(!is_caught(How::NotAtAll).await);
    for how in [How::FailsForADamagedEntry, How::HidesADamagedEntry, How::EndsAtADamagedEntry] {
        assert!(is_caught(how).await, "{how:?}");
    }
}

/// Returns whether a clause fails on a store with this fault.
async fn catches<F: Future<Output = ()> + Send + 'static>(clause: impl FnOnce(Store) -> F, how: How) -> bool {
    tokio::task::spawn(clause(Arc::new(Broken::new(how)))).await.is_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_m5_stores_confusing_two_ids_are_caught() {
    assert!(!catches(keys_of_all_sorts_share_nothing, How::NotAtAll).await);
    for how in [How::FoldsCase, How::Trims, How::JoinsTenantAndConversation, How::IgnoresTenants] {
        assert!(catches(keys_of_all_sorts_share_nothing, how).await, "{how:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_stores_are_caught() {
    assert!(catches(key_is_checked_before_version, How::ForgetsKeys).await);
    assert!(catches(key_is_checked_before_version, How::ChecksTheVersionFirst).await);
    assert!(catches(same_key_with_other_content_is_refused, How::AcceptsAnyContentForAKey).await);
    assert!(catches(wrong_version_is_a_conflict, How::IgnoresTheVersion).await);
    assert!(catches(wrong_version_is_a_conflict, How::WritesHalfOfWhatItRefuses).await);
    assert!(catches(dropped_append_is_applied_completely_or_never, How::WritesEntryByEntry).await);
    assert!(catches(writes_are_read_at_once, How::BringsBackTheDeleted).await);
    assert!(catches(a_long_log_keeps_its_order, How::IgnoresTheRange).await);
    assert!(catches(open_turn_is_reported_whole, How::HidesTheOpenTurn).await);
    assert!(catches(a_used_fence_outlives_a_deletion, How::IgnoresTokens).await);
    assert!(catches(another_last_turn_is_refused, How::IgnoresTheLastTurn).await);
    assert!(catches(a_used_fence_outlives_a_deletion, How::ForgetsTokensWithTheDeleted).await);
    assert!(catches(an_issued_token_outlives_a_deletion, How::ForgetsTokensWithTheDeleted).await);
    assert!(catches(an_empty_batch_changes_nothing, How::KeepsKeysOfEmptyBatches).await);
    assert!(catches(a_lease_takes_the_place_of_another, How::IgnoresTokens).await);
    assert!(catches(a_conversation_is_held_by_one_turn, How::GivesLeasesToAll).await);
    assert!(catches(one_concurrent_request_gets_the_lease, How::GivesLeasesToAll).await);
    assert!(catches(waiting_turns_get_the_lease_in_order, How::LeasesHaveNoOrder).await);
    assert!(catches(list_is_paged_in_order, How::ListsWithoutPages).await);
    assert!(catches(list_is_paged_in_order, How::ListsInOneOrder).await);
    assert!(catches(a_log_is_read_in_pages, How::ReadsWithoutPages).await);
    assert!(catches(a_branch_goes_from_its_parent, How::IgnoresParents).await);
    assert!(catches(a_parent_must_exist, How::TakesAnyParent).await);
    assert!(catches(parent_is_part_of_batch_identity, How::IgnoresParents).await);
    assert!(catches(an_older_branch_is_read_in_every_view, How::ForgetsParents).await);
    assert!(catches(an_older_branch_is_read_in_every_view, How::ReadsOneBranchOnly).await);
    assert!(catches(the_open_turn_is_that_of_the_branch, How::ReadsOneBranchOnly).await);
    assert!(catches(branches_are_listed_by_their_tips, How::ListsOneBranchOnly).await);
    assert!(catches(one_of_concurrent_starts_succeeds, How::IgnoresTheVersion).await);
    assert!(catches(numbers_beyond_all_bounds_are_typed_errors, How::IgnoresTheVersion).await);
    assert!(catches(page_may_begin_after_key_of_another_tenant, How::IgnoresWherePagesBegin).await);
    assert!(catches(rounds_survive, How::ForgetsRounds).await);
    assert!(catches(too_deep_entry_is_refused, How::TakesWhatCannotBeRead).await);
    assert!(catches(unreadable_entry_is_refused, How::TakesWhatCannotBeRead).await);
    for how in [How::CutsSteps, How::CutsRounds, How::FoldsTurns] {
        assert!(catches(keys_of_batches_are_compared_whole, how).await, "{how:?}");
    }
    assert!(catches(a_long_log_keeps_its_order, How::OrdersNumbersByTheirLowBytes).await);
    assert!(catches(nothing_of_a_deleted_conversation_returns, How::KeepsForksOfTheDeleted).await);
    for how in [How::ForgetsKeys, How::IgnoresTokens, How::HidesTheOpenTurn, How::ForgetsParents] {
        assert!(catches(it_answers_as_the_store_in_memory_does, how).await, "{how:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn store_whose_leases_never_end_fails_in_time() {
    let lasting = a_lease_ends_with_its_time(Arc::new(Broken::new(How::LeasesNeverEnd)));
    let failed = timeout(Duration::from_secs(60), AssertUnwindSafe(lasting).catch_unwind()).await;
    assert!(failed.expect("it ends").is_err(), "it passes");
}

#[tokio::test]
async fn store_that_reads_in_two_snapshots_is_caught() {
    assert!(catches(a_deletion_is_never_read_partially, How::ReadsInTwoSnapshots).await);
}

#[tokio::test(start_paused = true)]
async fn store_whose_takeovers_pass_for_ever_is_caught() {
    assert!(!catches(a_takeover_passes_no_turn_that_waited_long, How::NotAtAll).await);
    assert!(catches(a_takeover_passes_no_turn_that_waited_long, How::LeasesHaveNoOrder).await);
}

#[tokio::test(start_paused = true)]
async fn store_that_never_answers_fails_in_time() {
    let failed = AssertUnwindSafe(within_limit(std::future::pending())).catch_unwind();
    assert!(timeout(Duration::from_secs(3600), failed).await.expect("it ends").is_err());
}

#[tokio::test]
async fn store_that_forgets_what_it_acknowledged_is_caught() {
    let kept = InMemoryStore::new().with_leases();
    what_was_acknowledged_is_found_when_reopened(async || Arc::new(kept.clone()) as Store).await;
    let forgets = what_was_acknowledged_is_found_when_reopened(async || {
        Arc::new(InMemoryStore::new().with_leases()) as Store
    });
    assert!(AssertUnwindSafe(forgets).catch_unwind().await.is_err());
}
