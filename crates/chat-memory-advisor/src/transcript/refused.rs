//! Messages whose content the provider refused: they are stored as they are, and left out of later requests.

use std::ops::Range;

use advisor_core::{Message, MessageContent, Part, Role, TurnEnd};
use conversation_store::{Entry, EntryKind};

use crate::MemoryTexts;

/// Returns the places of the entries of a turn that its provider refused: those after the last answer, if the turn was
/// not answered later.
pub(crate) fn refused_part(turn: &[Entry]) -> Range<usize> {
    let is_accepted = |entry: &Entry| match &entry.kind {
        EntryKind::Message(message) => message.role() == Role::Assistant,
        kind => matches!(kind, EntryKind::TurnEnded(TurnEnd::Completed(_))),
    };
    let refused = turn.iter().rposition(|entry| entry.kind == EntryKind::TurnEnded(TurnEnd::Refused));
    let from = turn.iter().rposition(is_accepted).map_or(0, |accepted| accepted.saturating_add(1));
    from..refused.unwrap_or(from).max(from)
}

/// Returns the message to send in place of a refused one.
pub(crate) fn stand_in(message: &Message, texts: &MemoryTexts) -> Message {
    let new = match message.content() {
        MessageContent::User(_) => Message::user(texts.message_refused.clone()),
        MessageContent::Tool(result) => {
            let mut result = result.clone();
            result.parts = vec![Part::Text(texts.result_refused.clone())];
            Message::tool(result)
        }
        _ => return message.clone(),
    };
    if message.is_hidden() { new.hidden() } else { new }
}
