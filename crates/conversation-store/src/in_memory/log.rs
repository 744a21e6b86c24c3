use std::collections::HashMap;
use std::ops::Range;

use advisor_core::TurnId;
use tokio::time::Instant;

use crate::{
    Batch, BatchKey, BranchIndex, Entry, EntryId, FencingToken, NewEntry, ReadRange, Snapshot, StoreError,
    Version,
};

/// One conversation.
#[derive(Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
    forks: BranchIndex,
    /// Where the entries of each batch stand.
    batches: HashMap<BatchKey, Range<usize>>,
    /// The highest that was handed out or written with.
    fence: Option<FencingToken>,
    held: Option<Held>,
}

pub(super) struct Held {
    pub(super) turn: TurnId,
    pub(super) until: Instant,
}

impl Log {
    /// A log that takes no fence below this one.
    pub(super) fn behind(fence: Option<FencingToken>) -> Self {
        Self { fence, ..Self::default() }
    }

    /// Whether there is nothing in it to be kept.
    pub(super) fn is_blank(&self) -> bool {
        !self.exists() && self.held.is_none()
    }

    /// Whether no turn of it runs, or was left open.
    pub(super) fn is_idle(&self) -> bool {
        self.holder().is_none() && self.snapshot(self.tip(), ReadRange::LastEntries(0)).open_turn.is_none()
    }

    pub(super) fn fence(&self) -> Option<FencingToken> {
        self.fence
    }

    /// Gives it to a turn with a fence, until a time.
    pub(super) fn hold(&mut self, turn: TurnId, fence: FencingToken, until: Instant) {
        (self.fence, self.held) = (Some(fence), Some(Held { turn, until }));
    }

    /// Changes until when it is held with this fence, if it was handed out last.
    pub(super) fn hold_until(&mut self, fence: FencingToken, until: Instant) -> Option<()> {
        self.held.as_mut().filter(|_| self.fence == Some(fence))?.until = until;
        Some(())
    }

    /// So many entries behind this one.
    pub(super) fn page(&self, after: EntryId, limit: usize) -> Vec<Entry> {
        let from = usize::try_from(after.as_u64()).unwrap_or(usize::MAX);
        self.entries.iter().skip(from).take(limit).cloned().collect()
    }

    pub(super) fn tips(&self) -> Vec<EntryId> {
        self.forks.tips(self.tip().as_u64())
    }

    /// Forgets all but who holds it.
    pub(super) fn clear(&mut self) {
        (self.entries, self.forks, self.batches) = Default::default();
    }

    pub(super) fn exists(&self) -> bool {
        !self.entries.is_empty()
    }

    pub(super) fn holder(&self) -> Option<&Held> {
        self.held.as_ref().filter(|held| held.until > Instant::now())
    }

    fn version(&self) -> Version {
        Version::EMPTY.after(self.entries.len())
    }

    pub(super) fn tip(&self) -> EntryId {
        EntryId::new(self.version().as_u64())
    }

    pub(super) fn snapshot(&self, tip: EntryId, view: ReadRange) -> Snapshot {
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

    /// Appends a batch. No new turn begins where there are so many entries already.
    pub(super) fn append(
        &mut self,
        expected: Version,
        batch: Batch,
        most_entries: usize,
    ) -> Result<Version, StoreError> {
        if let Some(range) = self.batches.get(&batch.key) {
            let same = self.holds(range, &batch);
            return if same { Ok(Version::EMPTY.after(range.end)) } else { Err(StoreError::KeyReused) };
        }
        self.check(expected, &batch)?;
        if self.entries.len() >= most_entries && self.begins_a_turn(&batch) {
            return Err(StoreError::ConversationFull { limit: most_entries });
        }
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
            ..Entry::new(seq, new.turn, new.kind).with_round(new.round)
        }));
        self.batches.insert(batch.key, from..self.entries.len());
        Ok(self.version())
    }

    fn begins_a_turn(&self, batch: &Batch) -> bool {
        let last = self.entries.last().map(|last| &last.turn);
        batch.entries.iter().any(|new| Some(&new.turn) != last)
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

fn same(old: &Entry, new: &NewEntry) -> bool {
    old.turn == new.turn && old.kind == new.kind
}
