//! Prints logs and transcripts as a few words per entry.

use advisor_tests::prelude::*;

/// Prints a log as a few words per entry: its number, its turn and its content. An entry that does not follow
/// the one before it also has its predecessor.
pub(crate) fn of_log(log: &[Entry]) -> String {
    let of_entry = |entry: &Entry| {
        let said = match &entry.kind {
            EntryKind::Message(message) => of_message(message),
            EntryKind::CallStarted(start) => format!("started({})", start.call_id),
            EntryKind::TurnEnded(end) => format!("{end:?}"),
            other => format!("{other:?}"),
        };
        let parent = entry.parent.map(|parent| format!(" (follows {parent})")).unwrap_or_default();
        format!("{} {}: {said}{parent}", entry.seq, entry.turn)
    };
    log.iter().map(of_entry).collect::<Vec<_>>().join(", ")
}

/// A transcript in a few words per message.
pub(crate) fn of_messages(messages: &[Message]) -> String {
    messages.iter().map(of_message).collect::<Vec<_>>().join(", ")
}

fn of_message(message: &Message) -> String {
    let text = message.text();
    match (message.role(), message.tool_result()) {
        (_, Some(result)) => format!("result({}) {:?}", result.call_id, result.text()),
        (Role::Assistant, _) => {
            let calls: Vec<_> = message.tool_calls().map(|call| call.id.as_str()).collect();
            let calls = if calls.is_empty() { String::new() } else { format!(" calls({})", calls.join(",")) };
            format!("answer {text:?}{calls}")
        }
        (role, _) => format!("{role:?} {text:?}"),
    }
}
