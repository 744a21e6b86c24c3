//! What a model receives of a message, and messages in short for a report.

use advisor_core::{Message, Role};

/// Checks whether the model received this message, maybe with context before it.
pub(crate) fn is_sent(received: &Message, sent: &Message) -> bool {
    let of_user = received.role() == Role::User && sent.role() == Role::User;
    received == sent || (of_user && is_said(&received.text(), &sent.text()))
}

/// Checks whether the user said this in a message that the model received, maybe behind context.
pub(crate) fn is_said(received: &str, said: &str) -> bool {
    received.strip_suffix(said).is_some_and(|before| before.is_empty() || before.ends_with("\n\n"))
}

/// Returns messages in short: `u:text`, `a(c1):text`, `r(c1)`.
pub(crate) fn written<'a>(messages: impl IntoIterator<Item = &'a Message>) -> String {
    messages.into_iter().map(in_short).collect::<Vec<_>>().join(" ")
}

fn in_short(message: &Message) -> String {
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
