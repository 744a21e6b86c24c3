//! `BranchIndex` and `Segment`: fork points of a log, and paths as ranges of entry numbers.

use std::collections::{BTreeMap, BTreeSet};

use crate::EntryId;

/// The fork points of a log: each entry that does not follow the one before it, with its parent. A log without
/// branches has none.
///
/// A branch is the path from its last entry, the tip, back through parents. A parent always has a lower number
/// than its child, so the entries of a path are in ascending order. Stores keep fork points beside the entries,
/// and read a branch as a few ranges of the log.
///
/// # Example
/// ```
/// use conversation_store::{EntryId, BranchIndex};
///
/// // Entries 1 to 4, then 5 and 6 behind entry 2.
/// let forks = BranchIndex::from_iter([(5, EntryId(2))]);
/// let path: Vec<_> = forks.path(EntryId(6)).iter().map(|part| (part.first, part.last)).collect();
/// assert_eq!(path, [(1, 2), (5, 6)]);
/// assert_eq!(forks.tips(6), [EntryId(4), EntryId(6)]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BranchIndex(BTreeMap<u64, EntryId>);

/// A run of consecutively numbered entries on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a store makes it")]
pub struct Segment {
    /// The number of the first entry.
    pub first: u64,
    /// The number of the last entry.
    pub last: u64,
    /// The parent of the first entry, if that is not the entry before it.
    pub parent: Option<EntryId>,
}

impl BranchIndex {
    /// Returns the path from the first entry to `tip`.
    #[must_use]
    pub fn path(&self, tip: EntryId) -> Vec<Segment> {
        let mut path = Vec::new();
        let mut last = tip.0;
        while last > 0 {
            let fork = self.0.range(..=last).next_back();
            let (first, parent) = fork.map_or((1, None), |(first, parent)| (*first, Some(*parent)));
            path.push(Segment { first, last, parent });
            // Damaged data may name a parent that is not lower; clamping it ends the loop.
            last = parent.map_or(0, |parent| parent.0.min(first.saturating_sub(1)));
        }
        path.reverse();
        path
    }

    /// Returns the last entries of all branches in ascending order. `last` is the number of the log's last entry.
    #[must_use]
    pub fn tips(&self, last: u64) -> Vec<EntryId> {
        let followed: BTreeSet<_> = self.0.values().map(|parent| parent.0).collect();
        let ends = self.0.keys().map(|first| first.saturating_sub(1)).filter(|end| !followed.contains(end));
        ends.chain([last]).filter(|end| *end > 0).map(EntryId).collect()
    }

    /// Returns the entries after `after` up to `last` in log order, of all branches.
    #[must_use]
    pub fn range(&self, after: u64, last: u64) -> Vec<Segment> {
        let mut first = after.saturating_add(1);
        let mut parent = self.0.get(&first).copied();
        let mut range = Vec::new();
        if first > last {
            return range;
        }
        for (next, follows) in self.0.range(first.saturating_add(1)..).take_while(|(next, _)| **next <= last)
        {
            range.push(Segment { first, last: next.saturating_sub(1), parent });
            (first, parent) = (*next, Some(*follows));
        }
        range.push(Segment { first, last, parent });
        range
    }

    pub(crate) fn insert(&mut self, first: u64, parent: EntryId) {
        self.0.insert(first, parent);
    }

    pub(crate) fn parent_of(&self, seq: u64) -> Option<EntryId> {
        self.0.get(&seq).copied()
    }
}

/// Builds the index from pairs of an entry's number and its parent.
impl FromIterator<(u64, EntryId)> for BranchIndex {
    fn from_iter<I: IntoIterator<Item = (u64, EntryId)>>(forks: I) -> Self {
        Self(forks.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forks(forks: &[(u64, u64)]) -> BranchIndex {
        forks.iter().map(|(first, parent)| (*first, EntryId(*parent))).collect()
    }

    fn numbers(segments: &[Segment]) -> Vec<u64> {
        segments.iter().flat_map(|part| part.first..=part.last).collect()
    }

    #[test]
    fn branch_path_follows_parents_from_its_tip() {
        // 1 2 3, then 4 5 after 1, then 6 after 4, then 7 at the beginning.
        let forks = forks(&[(4, 1), (6, 4), (7, 0)]);
        for (tip, path) in [
            (0, &[][..]),
            (1, &[1]),
            (3, &[1, 2, 3]),
            (5, &[1, 4, 5]),
            (6, &[1, 4, 6]),
            (7, &[7]),
            (9, &[7, 8, 9]),
        ] {
            assert_eq!(numbers(&forks.path(EntryId(tip))), path, "to {tip}");
        }
        let tips: Vec<_> = forks.tips(8).into_iter().map(|tip| tip.0).collect();
        assert_eq!(tips, [3, 5, 6, 8]);
        // Continuing from the last entry of a branch adds no new branch.
        assert_eq!(self::forks(&[(4, 1), (6, 3)]).tips(6), [5, 6].map(EntryId));
        assert_eq!(BranchIndex::default().tips(0), []);
    }

    #[test]
    fn a_path_through_damaged_forks_ends() {
        assert_eq!(numbers(&forks(&[(4, 9), (2, 2)]).path(EntryId(5))), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn range_knows_where_branches_begin() {
        let forks = forks(&[(4, 1), (6, 4)]);
        let range = forks.range(1, 7);
        assert_eq!(numbers(&range), [2, 3, 4, 5, 6, 7]);
        assert_eq!(range[0].parent, None);
        assert_eq!(range[1].parent, Some(EntryId(1)));
        assert_eq!(forks.range(3, 4)[0].parent, Some(EntryId(1)));
        assert_eq!(forks.range(7, 7), []);
    }
}
