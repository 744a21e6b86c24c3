//! Short forms of messages and entries, for the report of a failed case.

use advisor_core::{Message, Role, TurnEnd};
use conversation_store::EntryKind;

pub(super) fn of_messages<'a>(messages: impl IntoIterator<Item = &'a Message>) -> String {
    messages.into_iter().map(of_message).collect::<Vec<_>>().join(" ")
}

pub(super) fn of_entry(kind: &EntryKind) -> String {
    match kind {
        EntryKind::Message(message) => of_message(message),
        EntryKind::TurnEnded(TurnEnd::Completed(_)) => "end".into(),
        EntryKind::TurnEnded(TurnEnd::Interrupted { partial }) => format!("interrupted({partial})"),
        EntryKind::TurnEnded(TurnEnd::Refused) => "refused".into(),
        EntryKind::TurnEnded(TurnEnd::Failed { partial }) => format!("failed({partial})"),
        EntryKind::TurnEnded(TurnEnd::RolledBack) => "rolled-back".into(),
        other => format!("{other:?}"),
    }
}

fn of_message(message: &Message) -> String {
    let text = message.text();
    match message.role() {
        Role::System => format!("s:{text}"),
        Role::User => format!("u:{text}"),
        Role::Assistant => {
            let ids: Vec<_> = message.tool_calls().map(|call| call.id.to_string()).collect();
            if ids.is_empty() { format!("a:{text}") } else { format!("a({}):{text}", ids.join(",")) }
        }
        Role::Tool => match message.tool_result() {
            Some(result) if result.is_error => format!("r({})!", result.call_id),
            Some(result) => format!("r({})", result.call_id),
            None => "r".into(),
        },
    }
}
