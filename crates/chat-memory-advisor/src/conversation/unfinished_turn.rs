//! `UnfinishedTurn`: a stopped turn whose end is not yet written, and its later end.

use advisor_core::{Message, Role, Text, TurnEnd, TurnId};
use conversation_store::{Entry, EntryKind, FencingToken, Version};

use crate::conversation::OVERHEAD;
use crate::transcript::repair::is_answer;

/// A turn that stopped before its end was written, and how to close it.
#[derive(Debug, Clone)]
pub(crate) struct UnfinishedTurn {
    pub(crate) turn: TurnId,
    pub(crate) end: TurnEnd,
    /// The last version of the conversation that the turn knew; `None` if it is unknown.
    pub(crate) known: Option<Version>,
    /// The entries of the turn that were being written after `known`; the log may contain them.
    pub(crate) unsure: Vec<EntryKind>,
    pub(crate) stopped: StoppedWhile,
    /// The version after all entries that were being written, including those that close the previous turn.
    pub(crate) until: Option<Version>,
    /// The fencing token of the run's lease.
    pub(crate) token: Option<FencingToken>,
    /// Distinguishes it from other unfinished runs of the turn; `None` if it is not registered.
    pub(crate) number: Option<u64>,
    /// About how many bytes it takes, once it is registered.
    pub(crate) bytes: usize,
}

/// The progress of a turn when it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoppedWhile {
    /// It was new to this run, and was writing its first entries. Its entries up to `known` belong to another run.
    Beginning,
    /// It was running, or was resumed after an earlier run.
    Running,
    /// It had continued after an end that may be its last one in the log.
    AfterEnd,
}

impl UnfinishedTurn {
    /// Creates a turn of which nothing was shown, and whose first entries may be written after version `known`.
    pub(crate) fn new(turn: TurnId, known: impl Into<Option<Version>>, unsure: Vec<EntryKind>) -> Self {
        let (end, known) = (TurnEnd::Interrupted { partial: Text::default() }, known.into());
        let until = known.map(|known| known.after(unsure.len()));
        let stopped = StoppedWhile::Running;
        Self { turn, end, known, unsure, stopped, until, token: None, number: None, bytes: 0 }
    }

    /// Checks whether it records nothing except that the turn stopped.
    pub(crate) fn is_silent(&self) -> bool {
        let partial = Text::default();
        self.answer().is_none()
            && self.stopped != StoppedWhile::AfterEnd
            && self.end == TurnEnd::Interrupted { partial }
    }

    /// Counts its bytes.
    pub(crate) fn weighed(mut self) -> Self {
        let partial = match &self.end {
            TurnEnd::Failed { partial } | TurnEnd::Interrupted { partial } => partial.len(),
            _ => 0,
        };
        let unsure = self.unsure.iter().filter_map(|kind| serde_json::to_vec(kind).ok());
        let unsure: usize = unsure.map(|kind| kind.len()).sum();
        self.bytes = OVERHEAD + self.turn.as_str().len() + partial + unsure;
        self
    }

    /// Returns the same turn without its texts.
    pub(crate) fn without_texts(self) -> Self {
        let end = without_partial(self.end);
        // The entries that were being written count as known, so that it is not at its beginning.
        let stopped = match self.stopped {
            StoppedWhile::Beginning => StoppedWhile::Running,
            stopped => stopped,
        };
        Self { end, known: self.until, unsure: Vec::new(), stopped, ..self }.weighed()
    }

    /// Checks whether its end replaces one that the log has already.
    pub(crate) fn overrides(&self) -> bool {
        self.stopped == StoppedWhile::AfterEnd || self.end == TurnEnd::RolledBack
    }

    /// Checks whether this is the last run of the turn, given the turn's entries in the log. After the entries
    /// that it knew, the log may only have those that it was writing and those that closed it, up to an end. Results
    /// without an end are those of another run, which goes on.
    pub(crate) fn is_last_to_run(&self, entries: &[Entry]) -> bool {
        let is_known = |entry: &&Entry| self.known.is_none_or(|known| entry.seq <= known.as_u64());
        let known = entries.iter().take_while(is_known).count();
        if self.stopped == StoppedWhile::Beginning && known > 0 {
            return false;
        }
        let later: Vec<_> = entries.iter().skip(known).map(|entry| &entry.kind).collect();
        let unsure: Vec<_> = self.unsure.iter().collect();
        let closing = later.strip_prefix(unsure.as_slice()).unwrap_or(&later);
        let has_end = closing.last().is_none_or(|last| matches!(last, EntryKind::TurnEnded(_)));
        has_end
            && closing.iter().all(|kind| match kind {
                EntryKind::Message(message) => message.role() == Role::Tool,
                EntryKind::TurnEnded(TurnEnd::Completed(_)) => false,
                EntryKind::TurnEnded(TurnEnd::RolledBack) => self.end == TurnEnd::RolledBack,
                EntryKind::TurnEnded(end) => *end == self.end || *end == without_partial(end.clone()),
                _ => false,
            })
    }

    /// Returns the end to close the turn with, given its entries in the log.
    pub(crate) fn end_of(&self, entries: &[Entry]) -> TurnEnd {
        let last = entries.iter().rev().find_map(|entry| entry.kind.as_message());
        // If the log has the answer, the answer holds the text that was shown.
        if self.answer().is_some() && self.answer() == last {
            return without_partial(self.end.clone());
        }
        self.end.clone()
    }

    fn answer(&self) -> Option<&Message> {
        let last = self.unsure.iter().rev().find_map(EntryKind::as_message);
        last.filter(|message| is_answer(message))
    }
}

/// Returns the same end without the shown text, which is remembered already.
pub(crate) fn without_partial(end: TurnEnd) -> TurnEnd {
    match end {
        TurnEnd::Failed { .. } => TurnEnd::Failed { partial: Text::default() },
        TurnEnd::Interrupted { .. } => TurnEnd::Interrupted { partial: Text::default() },
        end => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{answer, completed, interrupted, log, result, rolled_back, turn, user};

    fn stopped(end: TurnEnd) -> UnfinishedTurn {
        UnfinishedTurn { end, ..UnfinishedTurn::new(turn("t"), Version::new(1), Vec::new()) }
    }

    #[test]
    fn law_k3_only_undone_run_matches_rolled_back_end() {
        let cut = || TurnEnd::Interrupted { partial: "so far".into() };
        let closed = |end: EntryKind| log(&[("t", vec![user("u").into(), end])]);
        assert!(stopped(TurnEnd::RolledBack).is_last_to_run(&closed(rolled_back())));
        assert!(!stopped(cut()).is_last_to_run(&closed(rolled_back())), "another run was undone");
        assert!(stopped(cut()).is_last_to_run(&closed(interrupted(""))));
    }

    #[test]
    fn law_k3_beginning_without_texts_recognizes_its_entries() {
        let started = UnfinishedTurn {
            stopped: StoppedWhile::Beginning,
            until: Some(Version::new(3)),
            ..UnfinishedTurn::new(turn("t"), Version::new(1), vec![user("u").into()])
        };
        let written = log(&[("s", vec![user("s").into(), interrupted("")]), ("t", vec![user("u").into()])]);
        assert!(started.is_last_to_run(&written[2..]));
        assert!(started.without_texts().is_last_to_run(&written[2..]));
    }

    #[test]
    fn bytes_are_those_of_all_texts() {
        let empty = UnfinishedTurn { end: TurnEnd::RolledBack, ..stopped(TurnEnd::RolledBack) };
        let overhead = OVERHEAD + 1;
        assert_eq!(empty.weighed().bytes, overhead);
        let cut = TurnEnd::Interrupted { partial: "so far".into() };
        assert_eq!(stopped(cut.clone()).weighed().bytes, overhead + 6);
        let entry = EntryKind::from(user("u"));
        let written = serde_json::to_vec(&entry).unwrap().len();
        let unsure = UnfinishedTurn { unsure: vec![entry.clone(), entry], ..stopped(cut) };
        assert_eq!(unsure.clone().weighed().bytes, overhead + 6 + 2 * written);
        assert_eq!(unsure.without_texts().bytes, overhead);
    }

    #[test]
    fn law_k3_entries_of_another_run_show_that_it_continued() {
        let cut = || TurnEnd::Interrupted { partial: "so far".into() };
        let of_turn = |later: EntryKind| log(&[("t", vec![user("u").into(), later])]);
        let closed = log(&[("t", vec![user("u").into(), result("1").into(), interrupted("so far")])]);
        assert!(stopped(cut()).is_last_to_run(&closed), "results may close it, with an end");
        assert!(!stopped(cut()).is_last_to_run(&of_turn(result("1").into())), "another run wrote a result");
        assert!(!stopped(cut()).is_last_to_run(&of_turn(answer("a").into())));
        assert!(!stopped(cut()).is_last_to_run(&of_turn(completed())));
        assert!(stopped(cut()).is_last_to_run(&of_turn(interrupted("so far"))));
        assert!(!stopped(cut()).is_last_to_run(&of_turn(interrupted("other"))));
        let beginning = |entries: &[Entry]| {
            UnfinishedTurn { stopped: StoppedWhile::Beginning, ..stopped(cut()) }.is_last_to_run(entries)
        };
        assert!(beginning(&[]));
        assert!(!beginning(&log(&[("t", vec![user("u").into()])])), "another run wrote the known entry");
    }
}
