//! `Entries`: the entries of one conversation; compares and applies a batch.

use std::ops::Range;

use crate::{AppliedBatch, Batch, BranchIndex, Entry, EntryId, NewEntry, ReadRange, Snapshot, Version};

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

    /// Returns the turn of the last entry, as bytes; empty without entries.
    pub(super) fn last_turn(&self) -> &[u8] {
        self.entries.last().map_or(&[], |last| last.turn.as_str().as_bytes())
    }

    /// Compares a batch with the one that was applied at this position.
    pub(super) fn applied(&self, range: &Range<usize>, batch: &Batch) -> AppliedBatch {
        let written = self.entries.get(range.clone()).unwrap_or_default();
        AppliedBatch {
            before: Version::EMPTY.after(range.start),
            after: Version::EMPTY.after(range.end),
            parent: written.first().and_then(|first| first.parent),
            same_entries: written.iter().zip(&batch.entries).all(|(old, new)| same(old, new)),
        }
    }

    /// Returns whether a batch has an entry of another turn than the last entry's.
    pub(super) fn are_of_other_turns(&self, batch: &Batch) -> bool {
        let last = self.entries.last().map(|last| &last.turn);
        batch.entries.iter().any(|new| Some(&new.turn) != last)
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
