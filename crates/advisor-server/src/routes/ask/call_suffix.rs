//! `CallSuffix`: makes the ids of calls unique in a message of the AI SDK, and in a thread of AG-UI.

use advisor_core::TurnId;

use super::digest;

/// The prefix of the id of a turn that continues a message of the AI SDK.
const CONTINUED: &str = "continued-";

/// The length of a suffix behind its dash.
const LEN: usize = 8;

/// The end of the ids of a turn's calls, for clients that keep the calls of several turns together: models repeat ids.
///
/// It depends on the id of the turn alone, so that a repeated request has the same ids in each process.
#[derive(Debug)]
pub(in crate::routes) struct CallSuffix {
    text: String,
    is_of_continued: bool,
}

impl CallSuffix {
    pub(in crate::routes) fn of(turn: &TurnId) -> Self {
        let digest = digest(turn.as_str().as_bytes());
        let text = format!("-{}", digest.get(..LEN).unwrap_or_default());
        Self { text, is_of_continued: turn.as_str().starts_with(CONTINUED) }
    }

    /// Returns the suffix for a thread, which has all turns of the conversation.
    pub(in crate::routes) fn in_thread(self) -> String {
        self.text
    }

    /// Returns the suffix for a message of the AI SDK. Its first turn needs none.
    pub(in crate::routes) fn in_message(self) -> String {
        if self.is_of_continued { self.text } else { String::new() }
    }

    /// Checks whether the turn continues a message of the AI SDK.
    pub(in crate::routes) fn is_of_continued(&self) -> bool {
        self.is_of_continued
    }

    /// Checks whether a client knows the call of this id of the turn as `sent`. The id alone is that of an earlier call if the
    /// turn continues a message.
    pub(in crate::routes) fn names(&self, id: &str, sent: &str) -> bool {
        let has_suffix = sent.strip_suffix(&self.text) == Some(id);
        has_suffix || (id == sent && !self.is_of_continued)
    }
}

/// Returns the id of a turn that continues a message of the AI SDK.
pub(in crate::routes) fn continued_turn(parts: &[u8]) -> String {
    format!("{CONTINUED}{}", digest(parts))
}
