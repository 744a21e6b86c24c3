use conversation_store::{Entry, NewEntry};

/// Adds entries to a log as they will stand in it once they are written: behind its last one.
pub(crate) fn extend_with_planned(log: &mut Vec<Entry>, planned: impl IntoIterator<Item = NewEntry>) {
    for new in planned {
        let seq = log.last().map_or(0, |last| last.seq).saturating_add(1);
        log.push(Entry::new(seq, new.turn, new.kind));
    }
}
