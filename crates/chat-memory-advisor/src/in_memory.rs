use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};
use dashmap::{DashMap, Entry as Place};
use tokio::time::Instant;

use crate::{
    Batch, BatchKey, ConversationStore, Entry, EntryId, Fence, Forks, Leases, NewEntry, Page, Snapshot,
    StoreError, Version, View,
};

/// Conversations in this process's memory. Clones share them; they end with the process.
///
/// It keeps everything until it is deleted, and for each batch its key.
#[derive(Clone, Default)]
pub struct InMemoryStore {
    conversations: Arc<DashMap<ConversationKey, Log>>,
    fences: Arc<AtomicU64>,
    hands_out_leases: bool,
}

#[derive(Default)]
struct Log {
    entries: Vec<Entry>,
    forks: Forks,
    /// Where the entries of each batch stand.
    batches: HashMap<BatchKey, Range<usize>>,
    /// The highest that was handed out or written with.
    fence: Option<Fence>,
    held: Option<Held>,
}

struct Held {
    turn: TurnId,
    until: Instant,
}

impl InMemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same store, which hands out leases as if several processes shared it: for tests of what they do.
    #[must_use]
    pub fn with_leases(self) -> Self {
        Self { hands_out_leases: true, ..self }
    }
}

#[async_trait]
impl ConversationStore for InMemoryStore {
    async fn load(&self, key: &ConversationKey, view: View) -> Result<Snapshot, StoreError> {
        let log = self.conversations.get(key);
        Ok(log.map(|log| log.snapshot(log.tip(), view)).unwrap_or_default())
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        view: View,
    ) -> Result<Snapshot, StoreError> {
        let log = self.conversations.get(key).filter(|log| log.tip() >= tip);
        match log {
            Some(log) => Ok(log.snapshot(tip, view)),
            None if tip == EntryId::BEGINNING => Ok(Snapshot::default()),
            None => Err(StoreError::NoSuchEntry { id: tip }),
        }
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let Some(log) = self.conversations.get(key) else { return Ok(Vec::new()) };
        let from = usize::try_from(after.as_u64()).unwrap_or(usize::MAX);
        Ok(log.entries.iter().skip(from).take(limit).cloned().collect())
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>, StoreError> {
        let log = self.conversations.get(key);
        Ok(log.map(|log| log.forks.tips(log.tip().as_u64())).unwrap_or_default())
    }

    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError> {
        batch.validate()?;
        match self.conversations.entry(key.clone()) {
            Place::Occupied(mut log) => log.get_mut().append(expected, batch),
            Place::Vacant(place) => {
                let mut log = Log::default();
                let version = log.append(expected, batch)?;
                // A batch of nothing makes no conversation.
                if log.exists() {
                    place.insert(log);
                }
                Ok(version)
            }
        }
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        if let Some(mut log) = self.conversations.get_mut(key) {
            (log.entries, log.forks, log.batches) = Default::default();
        }
        self.conversations.remove_if(key, |_, log| !log.exists() && log.holder().is_none());
        Ok(())
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        let listed = |key: &ConversationKey| key.tenant() == &*page.tenant && page.after.as_ref() < Some(key);
        let mut keys: Vec<_> = self
            .conversations
            .iter()
            .filter(|log| log.exists())
            .map(|log| log.key().clone())
            .filter(listed)
            .collect();
        keys.sort_unstable();
        keys.truncate(page.limit);
        Ok(keys)
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.hands_out_leases.then_some(self)
    }
}

#[async_trait]
impl Leases for InMemoryStore {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        time: Duration,
        in_place_of: Option<Fence>,
    ) -> Result<Fence, StoreError> {
        let mut log = self.conversations.entry(key.clone()).or_default();
        if let (Some(held), Some(fence)) = (log.holder(), log.fence)
            && in_place_of != Some(fence)
        {
            let remaining = held.until.saturating_duration_since(Instant::now());
            return Err(StoreError::Held { turn: held.turn.clone(), fence, remaining });
        }
        let highest = log.fence.map_or(0, Fence::as_u64);
        let next = self.fences.fetch_add(1, Ordering::Relaxed).max(highest).saturating_add(1);
        log.fence = Some(Fence::new(next));
        log.held = Some(Held { turn: turn.clone(), until: after(time) });
        Ok(Fence::new(next))
    }

    async fn renew(&self, key: &ConversationKey, fence: Fence, time: Duration) -> Result<(), StoreError> {
        self.change_held(key, fence, after(time)).ok_or(StoreError::Fenced)
    }

    async fn release(&self, key: &ConversationKey, fence: Fence) -> Result<(), StoreError> {
        self.change_held(key, fence, Instant::now());
        Ok(())
    }
}

impl InMemoryStore {
    fn change_held(&self, key: &ConversationKey, fence: Fence, until: Instant) -> Option<()> {
        let mut log = self.conversations.get_mut(key).filter(|log| log.fence == Some(fence))?;
        log.held.as_mut()?.until = until;
        Some(())
    }
}

impl Log {
    fn exists(&self) -> bool {
        !self.entries.is_empty()
    }

    fn holder(&self) -> Option<&Held> {
        self.held.as_ref().filter(|held| held.until > Instant::now())
    }

    fn version(&self) -> Version {
        Version::EMPTY.after(self.entries.len())
    }

    fn tip(&self) -> EntryId {
        EntryId::new(self.version().as_u64())
    }

    fn snapshot(&self, tip: EntryId, view: View) -> Snapshot {
        Snapshot::along(&self.entries, &self.forks.path(tip), view)
    }

    /// Whether a batch stands in this place and follows what it says.
    fn holds(&self, range: &Range<usize>, batch: &Batch) -> bool {
        let written = self.entries.get(range.clone()).unwrap_or_default();
        let parent = batch.fork_at(Version::EMPTY.after(range.start));
        written.len() == batch.entries.len()
            && written.iter().zip(&batch.entries).all(|(old, new)| same(old, new))
            && written.first().is_none_or(|first| first.parent == parent)
    }

    fn append(&mut self, expected: Version, batch: Batch) -> Result<Version, StoreError> {
        if let Some(range) = self.batches.get(&batch.key) {
            let same = self.holds(range, &batch);
            return if same { Ok(Version::EMPTY.after(range.end)) } else { Err(StoreError::KeyReused) };
        }
        self.check(expected, &batch)?;
        let current = self.version();
        if !self.exists() && batch.entries.is_empty() {
            return Ok(current);
        }
        self.fence = batch.fence.or(self.fence);
        let (from, first) = (self.entries.len(), current.as_u64().saturating_add(1));
        if let Some(parent) = batch.fork_at(current) {
            self.forks.insert(first, parent);
        }
        let entries = (first..).zip(batch.entries);
        self.entries.extend(entries.map(|(seq, new)| Entry {
            parent: self.forks.parent_of(seq),
            ..Entry::new(seq, new.turn, new.kind).in_round(new.round)
        }));
        self.batches.insert(batch.key, from..self.entries.len());
        Ok(self.version())
    }

    /// What forbids to append a batch of a new key.
    fn check(&self, expected: Version, batch: &Batch) -> Result<(), StoreError> {
        // A conversation that is not there is only made by a batch that expects it so.
        if !self.exists() && (expected > Version::EMPTY || batch.last_turn.is_some()) {
            return Err(StoreError::Gone);
        }
        if batch.fence.is_some() && batch.fence < self.fence {
            return Err(StoreError::Fenced);
        }
        let current = self.version();
        if current != expected {
            return Err(StoreError::Conflict { current });
        }
        let last_turn = self.entries.last().map(|last| &last.turn);
        if batch.last_turn.is_some() && batch.last_turn.as_ref() != last_turn {
            return Err(StoreError::Gone);
        }
        match batch.parent.filter(|parent| parent.as_u64() > current.as_u64()) {
            Some(id) => Err(StoreError::NoSuchEntry { id }),
            None => Ok(()),
        }
    }
}

fn after(time: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + time.min(YEAR)
}

fn same(old: &Entry, new: &NewEntry) -> bool {
    old.turn == new.turn && old.kind == new.kind
}

impl fmt::Debug for InMemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryStore").field("conversations", &self.conversations.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::Message;

    use super::*;
    use crate::EntryKind;
    use crate::logs::turn;

    #[tokio::test]
    async fn law_r1_of_a_deleted_conversation_nothing_is_kept() {
        let (store, key) = (InMemoryStore::new(), ConversationKey::new("c").unwrap());
        let said = NewEntry::new(turn("t"), EntryKind::Message(Message::user("x")));
        let batch = Batch::new(BatchKey::new(turn("t"), 0, "x"), vec![said]);
        store.append(&key, Version::EMPTY, batch).await.unwrap();
        store.delete(&key).await.unwrap();
        assert!(store.conversations.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_without_an_end_lasts_for_a_year() {
        let (store, key) = (InMemoryStore::new().with_leases(), ConversationKey::new("c").unwrap());
        store.acquire(&key, &turn("t"), Duration::MAX, None).await.unwrap();
        tokio::time::advance(Duration::from_secs(364 * 24 * 3600)).await;
        let held = store.acquire(&key, &turn("u"), Duration::ZERO, None).await;
        assert!(matches!(held, Err(StoreError::Held { .. })), "{held:?}");
        tokio::time::advance(Duration::from_secs(24 * 3600)).await;
        store.acquire(&key, &turn("u"), Duration::ZERO, None).await.unwrap();
    }
}
