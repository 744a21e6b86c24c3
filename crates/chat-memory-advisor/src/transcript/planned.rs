//! `extend_with_planned`: adds entries to a log in the form that they will have once written.

use conversation_store::{Entry, NewEntry};

/// Appends planned entries to a log, with the numbers that follow its last entry.
pub(crate) fn extend_with_planned(log: &mut Vec<Entry>, planned: impl IntoIterator<Item = NewEntry>) {
    for new in planned {
        let seq = log.last().map_or(0, |last| last.seq).saturating_add(1);
        log.push(Entry::new(seq, new.turn, new.kind));
    }
}
