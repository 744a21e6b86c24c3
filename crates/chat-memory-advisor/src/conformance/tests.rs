use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use advisor_core::async_trait;
use tokio::task::yield_now;

use super::*;
use crate::{Fence, InMemoryStore, Leases, Page, Snapshot, StoreError, Version, View};

mod in_memory {
    crate::conformance!(crate::InMemoryStore::new());
}

mod leasing {
    crate::conformance!(crate::InMemoryStore::new().with_leases());
}

mod shared {
    // A handle of a store is a store.
    crate::conformance!(std::sync::Arc::new(crate::InMemoryStore::new()));
}

/// The clauses of the contract that are law M3, by its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn law_m3_an_append_is_atomic_ordered_idempotent_and_versioned() {
    let store: Store = Arc::new(InMemoryStore::new());
    append_keeps_order(Arc::clone(&store)).await;
    a_refused_append_leaves_no_trace(Arc::clone(&store)).await;
    a_dropped_append_is_applied_whole_or_not_at_all(Arc::clone(&store)).await;
    same_key_gives_the_same_version(Arc::clone(&store)).await;
    same_key_with_other_content_is_refused(Arc::clone(&store)).await;
    key_is_checked_before_version(Arc::clone(&store)).await;
    wrong_version_is_a_conflict(Arc::clone(&store)).await;
    versions_have_no_gaps_under_eight_writers(store).await;
}

#[test]
fn every_clause_is_run_by_the_macro() {
    let list = include_str!("../conformance.rs");
    let clauses = [
        include_str!("entries.rs"),
        include_str!("appends.rs"),
        include_str!("conversations.rs"),
        include_str!("leases.rs"),
    ];
    let lines = clauses.iter().flat_map(|clauses| clauses.lines());
    for line in lines.filter_map(|line| line.strip_prefix("pub async fn ")) {
        let clause = line.split('(').next().unwrap();
        assert!(list.lines().any(|listed| listed.trim() == clause), "{clause} is not run");
    }
}

/// A store that is broken in one way.
struct Broken {
    inner: InMemoryStore,
    how: How,
    keys: Mutex<HashMap<(ConversationKey, BatchKey), u32>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    ForgetsKeys,
    ChecksTheVersionFirst,
    AcceptsAnyContentForAKey,
    IgnoresTheVersion,
    WritesHalfOfWhatItRefuses,
    WritesEntryByEntry,
    BringsBackTheDeleted,
    IgnoresTenants,
    IgnoresTheView,
    HidesTheOpenTurn,
    IgnoresFences,
    GivesLeasesToAll,
    ListsWithoutPages,
}

impl Broken {
    fn renamed(&self, key: &ConversationKey) -> ConversationKey {
        let key = key.clone();
        if self.how == How::IgnoresTenants { ConversationKey::new(key.conversation()).unwrap() } else { key }
    }

    /// A key that the store has never seen.
    fn fresh(&self, key: &ConversationKey, batch: &mut Batch) {
        let mut keys = self.keys.lock().unwrap();
        let times = keys.entry((key.clone(), batch.key.clone())).or_default();
        *times += 1;
        batch.key.step = format!("{}-{times}", batch.key.step).into();
    }
}

#[async_trait]
impl ConversationStore for Broken {
    async fn load(&self, key: &ConversationKey, view: View) -> Result<Snapshot, StoreError> {
        let view = if self.how == How::IgnoresTheView { View::All } else { view };
        let mut read = self.inner.load(&self.renamed(key), view).await?;
        if self.how == How::HidesTheOpenTurn {
            read.open_turn = None;
        }
        Ok(read)
    }

    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        mut batch: Batch,
    ) -> Result<Version, StoreError> {
        let key = &self.renamed(key);
        let current = self.inner.load(key, View::LastEntries(0)).await?.version;
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
            How::IgnoresFences => batch.fence = None,
            _ => {}
        }
        self.inner.append(key, expected, batch).await
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.inner.delete(&self.renamed(key)).await
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        let all = Page { limit: usize::MAX, ..page.clone() };
        self.inner.list(if self.how == How::ListsWithoutPages { &all } else { page }).await
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
        time: Duration,
        in_place_of: Option<Fence>,
    ) -> Result<Fence, StoreError> {
        match self.inner.acquire(key, turn, time, in_place_of).await {
            Err(StoreError::Held { fence, .. }) if self.how == How::GivesLeasesToAll => {
                self.inner.acquire(key, turn, time, Some(fence)).await
            }
            given => given,
        }
    }

    async fn renew(&self, key: &ConversationKey, fence: Fence, time: Duration) -> Result<(), StoreError> {
        self.inner.renew(key, fence, time).await
    }

    async fn release(&self, key: &ConversationKey, fence: Fence) -> Result<(), StoreError> {
        self.inner.release(key, fence).await
    }
}

/// Whether a clause fails on a store that is broken so.
async fn catches<F: Future<Output = ()> + Send + 'static>(clause: impl FnOnce(Store) -> F, how: How) -> bool {
    let store = Broken { inner: InMemoryStore::new().with_leases(), how, keys: Mutex::default() };
    tokio::task::spawn(clause(Arc::new(store))).await.is_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_stores_are_caught() {
    assert!(catches(same_key_gives_the_same_version, How::ForgetsKeys).await);
    assert!(catches(key_is_checked_before_version, How::ChecksTheVersionFirst).await);
    assert!(catches(same_key_with_other_content_is_refused, How::AcceptsAnyContentForAKey).await);
    assert!(catches(wrong_version_is_a_conflict, How::IgnoresTheVersion).await);
    assert!(catches(a_refused_append_leaves_no_trace, How::WritesHalfOfWhatItRefuses).await);
    assert!(catches(a_dropped_append_is_applied_whole_or_not_at_all, How::WritesEntryByEntry).await);
    assert!(catches(append_after_delete_is_gone, How::BringsBackTheDeleted).await);
    assert!(catches(conversations_and_tenants_are_isolated, How::IgnoresTenants).await);
    assert!(catches(views_count_from_the_end, How::IgnoresTheView).await);
    assert!(catches(open_turn_is_reported_whole, How::HidesTheOpenTurn).await);
    assert!(catches(older_fence_is_refused, How::IgnoresFences).await);
    assert!(catches(a_lease_takes_the_place_of_another, How::IgnoresFences).await);
    assert!(catches(a_conversation_is_held_by_one_turn, How::GivesLeasesToAll).await);
    assert!(catches(racing_askers_are_given_one_lease, How::GivesLeasesToAll).await);
    assert!(catches(list_is_paged_in_order, How::ListsWithoutPages).await);
}
