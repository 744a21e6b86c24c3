//! The messages of a body: roles take turns, and the results of tools come first.
//!
//! Several messages of the chain become one of the API: results, and the user's text after them, are one message of
//! the user. The written form grows with the list. So a round adds only its new messages to the body of the round
//! before.

use advisor_core::{Message, MessageList, Result};
use bytes::Bytes;
use provider_http::exchange::BodyBuffer;
use provider_http::names::{Alphabet, CallIds, IdRule, Length, OfferedNames, ToolNames, WireNames};
use provider_http::written::{Growth, written_list};

use super::message::{WireRole, cached, write};
use super::message_form::{Format, MessageForm};
use super::offered::TOOL_NAMES;
use super::running_turn;
use super::server_tools::{Pairs, is_paired};
use crate::caching::PromptCaching;

/// The call ids that the API accepts (Q69).
const CALL_IDS: IdRule = IdRule::new(Alphabet::Word, Length::Any);

/// The written form of a list of messages. Kept with the list.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    system: System,
    /// The other messages, without the end of the last one.
    messages: BodyBuffer,
    /// The author of the last message.
    last: Option<WireRole>,
    /// Whether the last message has content of the user besides results of tools.
    has_user_content: bool,
    /// Whether the last block can be marked for the cache.
    is_markable: bool,
}

/// The blocks of the system messages.
#[derive(Debug, Clone, Default)]
struct System {
    blocks: Vec<Bytes>,
    /// The number of blocks before the first ephemeral one.
    stable: usize,
}

impl Turns {
    /// Writes messages, and returns the names in them.
    pub(super) fn write(
        list: &MessageList,
        format: &Format,
        offered: &OfferedNames<'_>,
        caching: PromptCaching,
    ) -> Result<(Self, ToolNames)> {
        let ends_ephemerally = || conversation(list.iter_back()).next().is_some_and(Message::is_ephemeral);
        if !offered.fit() || (caching.is_on() && ends_ephemerally()) {
            return Self::rewrite(list, format, offered, caching);
        }
        let usual = WireNames::usual(CALL_IDS, TOOL_NAMES);
        let form = MessageForm { format, names: &usual };
        let grown = written_list(list, format, Self::default, |turns, message| {
            if !turns.takes(message, form) {
                return Ok(Growth::Refused);
            }
            turns.push(message, &cached(message, form)?);
            Ok(Growth::Added)
        });
        match grown? {
            Some(turns) => Ok((turns, usual.tools)),
            None => Self::rewrite(list, format, offered, caching),
        }
    }

    /// Does the same where the form of a message depends on other messages.
    ///
    /// It does if call ids or names must be replaced, or if a result comes after the user's text. It also does if a
    /// tool of the server has no result, or if the end is not worth caching.
    fn rewrite(
        list: &MessageList,
        format: &Format,
        offered: &OfferedNames<'_>,
        caching: PromptCaching,
    ) -> Result<(Self, ToolNames)> {
        let wire = WireNames {
            ids: CallIds::new(CALL_IDS, list.iter().flat_map(WireNames::ids_in)),
            tools: offered.names(list.iter().flat_map(WireNames::tools_in)),
        };
        let usual = WireNames::usual(CALL_IDS, TOOL_NAMES);
        let (form, usual) = (MessageForm { format, names: &wire }, MessageForm { format, names: &usual });
        let messages = results_first(list);
        let ended = running_turn::messages_before(&messages);
        let answers = messages.iter().enumerate().map(|(place, message)| (*message, place >= ended));
        let pairs = Pairs::new(answers, &format.0);
        let stable = messages.iter().rposition(|message| !message.is_ephemeral());
        let mut turns = Self::default();
        for (place, message) in messages.iter().enumerate() {
            let written = if wire.is_special(message) || !is_paired(message, &format.0) {
                write(message, form, |block| pairs.sent_as(block))?
            } else {
                cached(message, usual)?
            };
            turns.push(message, &written);
            if Some(place) == stable {
                turns.mark(caching);
            }
        }
        turns.is_markable = false;
        Ok((turns, wire.tools))
    }

    /// Checks whether the usual form of a message can follow.
    fn takes(&self, message: &Message, usual: MessageForm<'_>) -> bool {
        let is_late = message.tool_result().is_some() && self.has_user_content;
        !is_late && usual.names.accepts(message) && is_paired(message, &usual.format.0)
    }

    fn push(&mut self, message: &Message, blocks: &Bytes) {
        let role = WireRole::from_message(message);
        if role == WireRole::System {
            return self.system.push(message, blocks);
        }
        if blocks.is_empty() {
            return;
        }
        let before: &[u8] = match (self.last, role) {
            (Some(last), role) if last == role => b",",
            (None, WireRole::Assistant) => br#"{"messages":[{"role":"assistant","content":["#,
            (None, _) => br#"{"messages":[{"role":"user","content":["#,
            (_, WireRole::Assistant) => br#"]},{"role":"assistant","content":["#,
            _ => br#"]},{"role":"user","content":["#,
        };
        self.messages.push(before, blocks);
        self.has_user_content = role == WireRole::User
            && (message.tool_result().is_none() || (self.last == Some(role) && self.has_user_content));
        // The last block of an answer may be thinking, which cannot be marked.
        self.is_markable = role == WireRole::User;
        self.last = Some(role);
    }

    /// Marks the last block so far for the cache.
    fn mark(&mut self, caching: PromptCaching) {
        if self.is_markable {
            let mut pieces = std::mem::take(&mut self.messages).into_pieces();
            caching.mark_last(&mut pieces);
            self.messages = pieces.into();
        }
    }

    /// Returns the blocks of the system messages, separated by commas, in pieces.
    pub(super) fn system_pieces(&self, caching: PromptCaching) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        for (place, block) in self.system.blocks.iter().enumerate() {
            if place > 0 {
                pieces.push(Bytes::from_static(b","));
            }
            pieces.push(block.clone());
            if place + 1 == self.system.stable {
                caching.mark_last(&mut pieces);
            }
        }
        pieces
    }

    /// Returns the pieces of a body up to the end of its messages.
    pub(super) fn into_pieces(mut self, caching: PromptCaching) -> Vec<Bytes> {
        self.mark(caching);
        let end: &[u8] = if self.last.is_some() { b"]}]" } else { br#"{"messages":[]"# };
        let mut pieces = self.messages.into_pieces();
        pieces.push(Bytes::from_static(end));
        pieces
    }
}

impl System {
    fn push(&mut self, message: &Message, blocks: &Bytes) {
        if !blocks.is_empty() {
            self.stable += usize::from(!message.is_ephemeral() && self.stable == self.blocks.len());
            self.blocks.push(blocks.clone());
        }
    }
}

/// Returns the messages without those of the system.
fn conversation<'a>(messages: impl Iterator<Item = &'a Message>) -> impl Iterator<Item = &'a Message> {
    messages.filter(|message| WireRole::from_message(message) != WireRole::System)
}

/// Returns the messages: those of the system first, and the results of tools before the other messages of their
/// turn of the user.
fn results_first(list: &MessageList) -> Vec<&Message> {
    let mut messages: Vec<&Message> = list.iter().collect();
    messages.sort_by_key(|message| WireRole::from_message(message) != WireRole::System);
    for turn in
        messages.chunk_by_mut(|one, other| WireRole::from_message(one) == WireRole::from_message(other))
    {
        turn.sort_by_key(|message| message.tool_result().is_none());
    }
    messages
}
