//! Selection of the last summary and of the entries that it does not cover; `Pending`, a summary that is not yet
//! written.

use advisor_core::{Message, TurnId};
use conversation_store::{Entry, EntryKind, Summary, same_turn};

use crate::MemoryTexts;
use crate::transcript::repair::answers_to_earlier_calls;

/// A summary that is not written yet, and the turn that ends with its last entry. The turn shows that it belongs
/// to this conversation, and not to a deleted one of the same name.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) summary: Summary,
    pub(crate) turn: TurnId,
}

impl Pending {
    pub(crate) fn new(summary: Summary, log: &[Entry]) -> Option<Self> {
        let last = log.iter().find(|entry| entry.seq == summary.until)?;
        Some(Self { turn: last.turn.clone(), summary })
    }

    /// Checks whether the log has the last entry that the summary covers.
    pub(crate) fn belongs_to(&self, log: &[Entry]) -> bool {
        let at_end = |entry: &&Entry| entry.seq == self.summary.until;
        log.iter().find(at_end).is_some_and(|entry| entry.turn == self.turn)
    }
}

/// Returns the summary that covers the most entries.
pub(crate) fn last_summary(log: &[Entry]) -> Option<&Summary> {
    let summaries = log.iter().filter_map(|entry| match &entry.kind {
        EntryKind::Summary(summary) => Some(summary),
        _ => None,
    });
    summaries.max_by_key(|summary| summary.until)
}

/// Returns the entries that a summary does not cover, from the first turn that answers no earlier calls. A turn
/// that begins with results belongs to the calls that they answer.
pub(crate) fn after<'a>(log: &'a [Entry], summary: Option<&Summary>) -> &'a [Entry] {
    let until = summary.map_or(0, |summary| summary.until);
    let from = log.partition_point(|entry| entry.seq <= until);
    let rest = log.get(from..).unwrap_or_default();
    if rest.first().is_none_or(Entry::is_first) {
        return rest;
    }
    rest.get(answers_to_earlier_calls(rest.chunk_by(same_turn))..).unwrap_or_default()
}

/// Returns the message for a summary: a system message, since neither the user nor the model wrote it.
pub(crate) fn message_of(summary: &Summary, texts: &MemoryTexts) -> Message {
    Message::system(format!("{}\n{}", texts.summary, summary.text))
}
