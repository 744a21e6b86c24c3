//! `ResponseId`: the id of a response, which has its turn and its conversation.

use advisor_core::{ConversationKey, TurnId};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const PREFIX: &str = "resp_";

/// The id of a response: its turn and its conversation, so that each process of a service finds both.
///
/// The tenant is no part of it: it is always that of the request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResponseId {
    pub(super) turn: TurnId,
    pub(super) conversation: String,
}

impl ResponseId {
    /// Writes the id of a turn. Its characters are letters, digits, `-`, `_` and `.`.
    pub(super) fn write(conversation: &ConversationKey, turn: &TurnId) -> String {
        format!("{PREFIX}{turn}.{}", URL_SAFE_NO_PAD.encode(conversation.conversation()))
    }

    /// Reads an id that [`write`](Self::write) may have written.
    pub(super) fn read(id: &str) -> Option<Self> {
        let (turn, conversation) = id.strip_prefix(PREFIX)?.split_once('.')?;
        let conversation = URL_SAFE_NO_PAD.decode(conversation).ok()?;
        Some(Self {
            turn: TurnId::new(turn).ok()?,
            conversation: String::from_utf8(conversation).ok().filter(|id| !id.is_empty())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn written_ids_are_read(turn in "[A-Za-z0-9_-]{1,128}", conversation in "[^\0]{1,100}") {
            let turn = TurnId::new(&turn).unwrap();
            let key = ConversationKey::new(&conversation).unwrap();
            let id = ResponseId::write(&key, &turn);
            prop_assert_eq!(ResponseId::read(&id), Some(ResponseId { turn, conversation }));
        }

        #[test]
        fn any_text_is_read_or_refused(id in "(resp_)?[A-Za-z.=+/_-]{0,40}") {
            let _ = ResponseId::read(&id);
        }
    }
}
