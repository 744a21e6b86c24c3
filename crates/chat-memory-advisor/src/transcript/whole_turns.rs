//! `whole_turns`: the entries of a snapshot without turns cut at its start.

use conversation_store::{Entry, Snapshot, same_turn};

use crate::transcript::repair::answers_to_earlier_calls;

/// Returns the entries of a snapshot without the turns whose beginning was not read.
pub(crate) fn whole_turns(snapshot: Snapshot) -> Vec<Entry> {
    let open = snapshot.open_turn.is_some();
    let mut log = snapshot.into_entries();
    if log.first().is_none_or(Entry::is_first) {
        return log;
    }
    let mut turns = log.chunk_by(same_turn);
    if open {
        // An open turn is always read whole.
        turns.next_back();
    }
    let cut = turns.next().map_or(0, <[Entry]>::len);
    let answers = answers_to_earlier_calls(turns);
    log.split_off(cut + answers)
}
