use advisor_core::{TurnEnd, TurnId};

use crate::{Entry, EntryKind, Version};

/// How much of a conversation is read, counted from its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum View {
    /// All of it.
    #[default]
    All,
    /// So many entries.
    LastEntries(usize),
    /// All entries of so many turns.
    LastTurns(usize),
}

/// A conversation as it was at one version.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The entries of the view, in order.
    pub entries: Vec<Entry>,
    /// The version of the conversation, whatever the view.
    pub version: Version,
    /// The last turn, if it has not ended.
    pub open_turn: Option<OpenTurn>,
}

/// The last turn of a conversation when it has not ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OpenTurn {
    /// The turn.
    pub turn: TurnId,
    /// All its entries, also those that the view leaves out.
    pub entries: Vec<Entry>,
}

impl Snapshot {
    /// The snapshot that a whole log gives in this view: what every store must answer.
    ///
    /// It is for stores that hold logs in memory, and for comparing others with.
    #[must_use]
    pub fn of(log: &[Entry], view: View) -> Self {
        let from = match view {
            View::All => 0,
            View::LastEntries(count) => log.len().saturating_sub(count),
            View::LastTurns(count) => {
                log.len() - log.chunk_by(same_turn).rev().take(count).map(<[Entry]>::len).sum::<usize>()
            }
        };
        Self {
            entries: log.get(from..).unwrap_or_default().to_vec(),
            version: Version::new(log.last().map_or(0, |entry| entry.seq)),
            open_turn: OpenTurn::of(log),
        }
    }

    /// The entries that the view and the open turn hold together.
    pub(crate) fn into_entries(self) -> Vec<Entry> {
        match self.open_turn {
            Some(open) if open.entries.len() > self.entries.len() => open.entries,
            _ => self.entries,
        }
    }
}

impl OpenTurn {
    /// The turn at the end of a log, if it has not ended.
    #[must_use]
    pub fn of(log: &[Entry]) -> Option<Self> {
        let last = log.chunk_by(same_turn).next_back()?;
        let turn = last.first()?.turn.clone();
        last_end(last).is_none().then(|| Self { turn, entries: last.to_vec() })
    }
}

/// Whether two entries, one after the other, belong to the same turn.
pub(crate) fn same_turn(one: &Entry, next: &Entry) -> bool {
    one.turn == next.turn
}

/// How a turn ended, if no message of it follows its last end.
pub(crate) fn last_end(entries: &[Entry]) -> Option<&TurnEnd> {
    entries.iter().rev().find_map(|entry| match &entry.kind {
        EntryKind::TurnEnded(end) => Some(Some(end)),
        EntryKind::Message(_) => Some(None),
        _ => None,
    })?
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
    fn views_count_from_the_end_and_keep_the_version() {
        let log = log(&[("a", &["1", "end"]), ("b", &["2", "3", "end"]), ("c", &["4", "end"])]);
        let seqs = |view| Snapshot::of(&log, view).entries.iter().map(|entry| entry.seq).collect::<Vec<_>>();
        assert_eq!(seqs(View::All), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(seqs(View::LastEntries(3)), [5, 6, 7]);
        assert_eq!(seqs(View::LastEntries(99)), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(seqs(View::LastTurns(2)), [3, 4, 5, 6, 7]);
        assert_eq!(seqs(View::LastTurns(0)), Vec::<u64>::new());
        assert_eq!(Snapshot::of(&log, View::LastEntries(0)).version, Version::new(7));
        assert_eq!(Snapshot::of(&[], View::All), Snapshot::default());
    }

    #[test]
    fn a_turn_is_open_until_its_end_and_again_after_more_messages() {
        let open = |turns| Snapshot::of(&log(turns), View::LastEntries(1)).open_turn;
        assert_eq!(open(&[("a", &["1", "end"])]), None);
        assert_eq!(open(&[("a", &["1", "2"])]).unwrap().entries.len(), 2);
        assert_eq!(open(&[("a", &["1", "end"]), ("b", &["2", "end", "3"])]).unwrap().entries.len(), 3);
    }
}
