//! `ReadRange` and `Snapshot`: range and result of a load; `last_end` and `same_turn`.

use advisor_core::{TurnEnd, TurnId};

use crate::{BranchIndex, Entry, EntryId, EntryKind, Segment, Version};

/// The part of a conversation to read, counted from its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a store must serve each of them")]
pub enum ReadRange {
    /// The whole conversation.
    #[default]
    All,
    /// The last `n` entries.
    LastEntries(usize),
    /// All entries of the last `n` turns.
    LastTurns(usize),
}

/// A conversation at one version.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The entries of the read range, in order.
    pub entries: Vec<Entry>,
    /// The version of the conversation, for any range.
    pub version: Version,
    /// The entries of the last turn of the branch, if it has not ended. All of them, including those outside the read
    /// range.
    pub open_turn: Option<Vec<Entry>>,
}

impl Snapshot {
    /// Returns the snapshot that a [`load`](crate::ConversationStore::load) of this range must return for a whole
    /// log.
    ///
    /// For stores that hold logs in memory, and for comparing other stores with.
    #[must_use]
    pub fn from_log(log: &[Entry], range: ReadRange) -> Self {
        Self::from_branch(log, EntryId(log.last().map_or(0, |entry| entry.seq)), range)
    }

    /// Returns the snapshot of the branch that ends with `tip`.
    #[must_use]
    pub fn from_branch(log: &[Entry], tip: EntryId, range: ReadRange) -> Self {
        let forks: BranchIndex = log.iter().filter_map(|entry| Some((entry.seq, entry.parent?))).collect();
        Self::along(log, &forks.path(tip), range)
    }

    /// Returns the snapshot of a path through a log. Only returned entries are visited.
    pub(crate) fn along(log: &[Entry], path: &[Segment], range: ReadRange) -> Self {
        let backwards = || path.iter().rev().flat_map(|part| part_of(log, part).iter().rev());
        let run = backwards().next().map(|last| backwards().take_while(|entry| entry.turn == last.turn));
        let is_open = run.clone().is_some_and(|run| end_backwards(run).is_none());
        let forwards = |entries: &mut dyn Iterator<Item = &Entry>| {
            let mut entries: Vec<_> = entries.cloned().collect();
            entries.reverse();
            entries
        };
        let entries = match range {
            ReadRange::All => forwards(&mut backwards()),
            ReadRange::LastEntries(count) => forwards(&mut backwards().take(count)),
            ReadRange::LastTurns(count) => {
                let (mut turns, mut turn) = (0, None);
                forwards(&mut backwards().take_while(|entry| {
                    turns += usize::from(turn != Some(&entry.turn));
                    turn = Some(&entry.turn);
                    turns <= count
                }))
            }
        };
        Self {
            entries,
            version: Version(log.last().map_or(0, |entry| entry.seq)),
            open_turn: run.filter(|_| is_open).map(|mut run| forwards(&mut run)),
        }
    }

    /// Builds a snapshot from entries that were read from a store. The read range starts at entry `range_from`; the
    /// open turn, if one exists, at `open_from`. For stores that record both numbers, since damaged entries do not
    /// contain them.
    #[must_use]
    pub fn from_read(
        version: Version,
        mut read: Vec<Entry>,
        range_from: u64,
        open_from: Option<u64>,
    ) -> Self {
        let place_of = |seq| read.partition_point(|entry| entry.seq < seq);
        let open_turn = open_from.and_then(|from| read.get(place_of(from)..).map(<[Entry]>::to_vec));
        let open_turn = open_turn.filter(|open| !open.is_empty());
        let entries = read.split_off(place_of(range_from));
        Self { entries, version, open_turn }
    }

    /// Returns the turn of the last entry, if the snapshot includes that entry and it is readable. Only the store
    /// may know the turn of a damaged or missing one.
    #[must_use]
    pub fn last_turn(&self) -> Option<&TurnId> {
        let last = self.open_turn.as_ref().unwrap_or(&self.entries).last();
        last.filter(|last| !matches!(last.kind, EntryKind::Corrupt(_))).map(|last| &last.turn)
    }

    /// Returns whether the range starts with the first entry of the branch.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.entries.first().is_none_or(|first| first.follows() == EntryId::BEGINNING)
    }

    /// Returns the entries of the range and of the open turn together.
    #[must_use]
    pub fn into_entries(self) -> Vec<Entry> {
        match self.open_turn {
            Some(open) if open.len() > self.entries.len() => open,
            _ => self.entries,
        }
    }
}

/// Returns whether two consecutive entries belong to the same turn.
#[must_use]
pub fn same_turn(one: &Entry, next: &Entry) -> bool {
    one.turn == next.turn
}

/// Returns how a turn ended, unless one of its messages follows its last end.
#[must_use]
pub fn last_end(entries: &[Entry]) -> Option<&TurnEnd> {
    end_backwards(entries.iter().rev())
}

fn end_backwards<'a>(mut entries: impl Iterator<Item = &'a Entry>) -> Option<&'a TurnEnd> {
    entries.find_map(|entry| match &entry.kind {
        EntryKind::TurnEnded(end) => Some(Some(end)),
        EntryKind::Message(_) => Some(None),
        _ => None,
    })?
}

fn part_of<'a>(log: &'a [Entry], part: &Segment) -> &'a [Entry] {
    let (from, to) = (
        log.partition_point(|entry| entry.seq < part.first),
        log.partition_point(|entry| entry.seq <= part.last),
    );
    log.get(from..to).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use advisor_core::{FinishReason, Message};

    fn log(turns: &[(&str, &[&str])]) -> Vec<Entry> {
        let of_turn = |(turn, kinds): &(&str, &[&str])| {
            let turn = TurnId::new(turn).unwrap();
            kinds
                .iter()
                .map(|kind| match *kind {
                    "end" => (turn.clone(), EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop))),
                    text => (turn.clone(), EntryKind::Message(Message::user(text))),
                })
                .collect::<Vec<_>>()
        };
        (1..)
            .zip(turns.iter().flat_map(of_turn))
            .map(|(seq, (turn, kind))| Entry::new(seq, turn, kind))
            .collect()
    }

    #[test]
    fn only_a_range_from_the_beginning_is_whole() {
        let log = log(&[("a", &["1", "end"]), ("b", &["2", "end"])]);
        let is_whole = |range| Snapshot::from_log(&log, range).is_whole();
        let ranges =
            [ReadRange::All, ReadRange::LastEntries(4), ReadRange::LastEntries(3), ReadRange::LastTurns(1)];
        assert_eq!(ranges.map(is_whole), [true, true, false, false]);
        assert!(Snapshot::from_log(&[], ReadRange::All).is_whole());
    }

    #[test]
    fn views_count_from_end_and_keep_version() {
        let log = log(&[("a", &["1", "end"]), ("b", &["2", "3", "end"]), ("c", &["4", "end"])]);
        let seqs =
            |range| Snapshot::from_log(&log, range).entries.iter().map(|entry| entry.seq).collect::<Vec<_>>();
        assert_eq!(seqs(ReadRange::All), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(seqs(ReadRange::LastEntries(3)), [5, 6, 7]);
        assert_eq!(seqs(ReadRange::LastEntries(99)), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(seqs(ReadRange::LastTurns(2)), [3, 4, 5, 6, 7]);
        assert_eq!(seqs(ReadRange::LastTurns(0)), Vec::<u64>::new());
        assert_eq!(Snapshot::from_log(&log, ReadRange::LastEntries(0)).version, Version(7));
        assert_eq!(Snapshot::from_log(&[], ReadRange::All), Snapshot::default());
    }

    #[test]
    fn branch_view_follows_its_path() {
        let mut log = log(&[("a", &["1", "end"]), ("b", &["2", "end"]), ("b", &["end"]), ("c", &["3"])]);
        // Entry 5 ends turn `b` after its first entry; `c` follows.
        log[4].parent = Some(EntryId(3));
        let seqs = |tip, range| {
            let read = Snapshot::from_branch(&log, EntryId(tip), range);
            assert_eq!(read.version, Version(6));
            read.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>()
        };
        assert_eq!(seqs(6, ReadRange::All), [1, 2, 3, 5, 6]);
        assert_eq!(seqs(6, ReadRange::LastEntries(3)), [3, 5, 6]);
        assert_eq!(seqs(6, ReadRange::LastTurns(2)), [3, 5, 6]);
        assert_eq!(seqs(4, ReadRange::LastTurns(1)), [3, 4]);
        assert_eq!(seqs(0, ReadRange::All), Vec::<u64>::new());
        let open = |tip| Snapshot::from_branch(&log, EntryId(tip), ReadRange::LastEntries(0)).open_turn;
        assert_eq!((open(4), open(5)), (None, None));
        assert_eq!(open(3).unwrap().len(), 1);
        assert_eq!(
            Snapshot::from_log(&log, ReadRange::All),
            Snapshot::from_branch(&log, EntryId(6), ReadRange::All)
        );
    }

    #[test]
    fn read_entries_are_cut_at_view_and_turn() {
        let log = log(&[("a", &["1", "end"]), ("b", &["2", "3"])]);
        for range in
            [ReadRange::All, ReadRange::LastEntries(0), ReadRange::LastEntries(1), ReadRange::LastTurns(1)]
        {
            let whole = Snapshot::from_log(&log, range);
            let range_from = 5 - u64::try_from(whole.entries.len()).unwrap();
            assert_eq!(Snapshot::from_read(whole.version, log.clone(), range_from, Some(3)), whole);
            let ended = Snapshot::from_read(whole.version, log.clone(), range_from, None);
            assert_eq!((ended.entries, ended.open_turn), (whole.entries, None));
        }
        assert_eq!(Snapshot::from_read(Version::EMPTY, Vec::new(), 1, Some(1)), Snapshot::default());
    }

    #[test]
    fn law_m5_last_turn_is_known_when_visible() {
        let last = |turns, range| Snapshot::from_log(&log(turns), range).last_turn().map(ToString::to_string);
        let ended: &[(&str, &[&str])] = &[("a", &["1", "end"]), ("b", &["2", "end"])];
        assert_eq!(last(ended, ReadRange::All).as_deref(), Some("b"));
        assert_eq!(last(ended, ReadRange::LastEntries(0)), None);
        let open: &[(&str, &[&str])] = &[("a", &["1", "end"]), ("b", &["2"])];
        assert_eq!(last(open, ReadRange::LastEntries(0)).as_deref(), Some("b"));
        assert_eq!(last(&[], ReadRange::All), None);
    }

    #[test]
    fn law_m6_damaged_last_entry_has_no_known_turn() {
        let mut log = log(&[("a", &["1", "end"]), ("b", &["2"])]);
        log[2].kind = EntryKind::Corrupt(Vec::new());
        assert_eq!(Snapshot::from_log(&log, ReadRange::All).last_turn(), None);
        assert_eq!(Snapshot::from_log(&log, ReadRange::LastEntries(0)).last_turn(), None);
    }

    #[test]
    fn turn_is_open_until_end_and_reopened_later() {
        let open = |turns| {
            Snapshot::from_log(&log(turns), ReadRange::LastEntries(1)).open_turn.map(|open| open.len())
        };
        assert_eq!(open(&[("a", &["1", "end"])]), None);
        assert_eq!(open(&[("a", &["1", "2"])]), Some(2));
        assert_eq!(open(&[("a", &["1", "end"]), ("b", &["2", "end", "3"])]), Some(3));
    }
}
