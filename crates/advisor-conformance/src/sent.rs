//! What a model receives of a message.

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
