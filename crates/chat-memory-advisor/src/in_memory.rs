use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use advisor_core::{ConversationKey, async_trait};
use dashmap::DashMap;

use crate::{
    Batch, BatchKey, ConversationStore, Entry, Fence, NewEntry, Page, Snapshot, StoreError, Version, View,
};

/// Conversations in this process's memory. Clones share them; they end with the process.
///
/// It keeps everything until it is deleted, and for each batch its key. It keeps no branches: a batch
/// with a parent is refused.
#[derive(Clone, Default)]
pub struct InMemoryStore {
    conversations: Arc<DashMap<ConversationKey, Log>>,
}

#[derive(Default)]
struct Log {
    entries: Vec<Entry>,
    /// Where the entries of each batch stand.
    batches: HashMap<BatchKey, Range<usize>>,
    fence: Option<Fence>,
}

impl InMemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl ConversationStore for InMemoryStore {
    async fn load(&self, key: &ConversationKey, view: View) -> Result<Snapshot, StoreError> {
        let log = self.conversations.get(key);
        Ok(log.map(|log| Snapshot::of(&log.entries, view)).unwrap_or_default())
    }

    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError> {
        if batch.parent.is_some() {
            return Err(StoreError::Unsupported { what: "branches of a conversation" });
        }
        // A conversation that is not there is only made by a batch that expects it so.
        if expected > Version::EMPTY {
            let mut log = self.conversations.get_mut(key).ok_or(StoreError::Gone)?;
            return log.append(expected, batch);
        }
        if batch.entries.is_empty() && !self.conversations.contains_key(key) {
            return Ok(Version::EMPTY);
        }
        self.conversations.entry(key.clone()).or_default().append(expected, batch)
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.conversations.remove(key);
        Ok(())
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        let listed = |key: &ConversationKey| key.tenant() == &*page.tenant && page.after.as_ref() < Some(key);
        let mut keys: Vec<_> =
            self.conversations.iter().map(|log| log.key().clone()).filter(listed).collect();
        keys.sort_unstable();
        keys.truncate(page.limit);
        Ok(keys)
    }
}

impl Log {
    fn append(&mut self, expected: Version, batch: Batch) -> Result<Version, StoreError> {
        if let Some(range) = self.batches.get(&batch.key) {
            let written = self.entries.get(range.clone()).unwrap_or_default();
            let same = written.len() == batch.entries.len()
                && written.iter().zip(&batch.entries).all(|(old, new)| same(old, new));
            return if same { Ok(Version::EMPTY.after(range.end)) } else { Err(StoreError::KeyReused) };
        }
        if batch.fence.is_some() && batch.fence < self.fence {
            return Err(StoreError::Fenced);
        }
        let current = Version::EMPTY.after(self.entries.len());
        if current != expected {
            return Err(StoreError::Conflict { current });
        }
        self.fence = batch.fence.or(self.fence);
        let from = self.entries.len();
        let seqs = current.as_u64().saturating_add(1)..;
        self.entries.extend(seqs.zip(batch.entries).map(|(seq, new)| Entry::new(seq, new.turn, new.kind)));
        self.batches.insert(batch.key, from..self.entries.len());
        Ok(Version::EMPTY.after(self.entries.len()))
    }
}

fn same(old: &Entry, new: &NewEntry) -> bool {
    old.turn == new.turn && old.kind == new.kind
}

impl fmt::Debug for InMemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryStore").field("conversations", &self.conversations.len()).finish()
    }
}
