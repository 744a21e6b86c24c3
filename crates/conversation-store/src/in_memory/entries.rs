use std::ops::Range;

use crate::{
    Batch, BranchIndex, Entry, EntryId, FencingToken, NewEntry, ReadRange, Result, Snapshot, StoreError,
    Version,
};

/// The entries of one conversation, of all branches.
#[derive(Default)]
pub(super) struct Entries {
    entries: Vec<Entry>,
    forks: BranchIndex,
}

impl Entries {
    pub(super) fn exist(&self) -> bool {
        !self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn version(&self) -> Version {
        Version::EMPTY.after(self.entries.len())
    }

    /// Returns the last entry.
    pub(super) fn tip(&self) -> EntryId {
        EntryId::new(self.version().as_u64())
    }

    pub(super) fn tips(&self) -> Vec<EntryId> {
        self.forks.tips(self.tip().as_u64())
    }

    pub(super) fn snapshot(&self, tip: EntryId, range: ReadRange) -> Snapshot {
        Snapshot::along(&self.entries, &self.forks.path(tip), range)
    }

    /// Returns at most `limit` entries after this one.
    pub(super) fn page(&self, after: EntryId, limit: usize) -> Vec<Entry> {
        let from = usize::try_from(after.as_u64()).unwrap_or(usize::MAX);
        self.entries.iter().skip(from).take(limit).cloned().collect()
    }

    /// Returns whether the log has the batch's entries at this position, with the same parent.
    pub(super) fn hold(&self, range: &Range<usize>, batch: &Batch) -> bool {
        let written = self.entries.get(range.clone()).unwrap_or_default();
        let parent = batch.fork_at(Version::EMPTY.after(range.start));
        written.len() == batch.entries.len()
            && written.iter().zip(&batch.entries).all(|(old, new)| same(old, new))
            && written.first().is_none_or(|first| first.parent == parent)
    }

    /// Returns whether a batch has an entry of another turn than the last entry's.
    pub(super) fn are_of_other_turns(&self, batch: &Batch) -> bool {
        let last = self.entries.last().map(|last| &last.turn);
        batch.entries.iter().any(|new| Some(&new.turn) != last)
    }

    /// Checks whether a batch with a new key may be appended. `token` is the highest known token.
    pub(super) fn check(&self, expected: Version, batch: &Batch, token: Option<FencingToken>) -> Result {
        // Only a batch that expects an empty conversation creates one.
        if !self.exist() && (expected > Version::EMPTY || batch.last_turn.is_some()) {
            return Err(StoreError::Gone);
        }
        if batch.token.is_some() && batch.token < token {
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

    /// Appends the entries of a batch and returns their position.
    pub(super) fn extend(&mut self, batch: Batch) -> Range<usize> {
        let (from, current) = (self.entries.len(), self.version());
        let first = current.as_u64().saturating_add(1);
        if let Some(parent) = batch.fork_at(current) {
            self.forks.insert(first, parent);
        }
        let entries = (first..).zip(batch.entries);
        self.entries.extend(entries.map(|(seq, new)| Entry {
            parent: self.forks.parent_of(seq),
            ..Entry::new(seq, new.turn, new.kind).with_round(new.round)
        }));
        from..self.entries.len()
    }
}

fn same(old: &Entry, new: &NewEntry) -> bool {
    old.turn == new.turn && old.kind == new.kind
}
