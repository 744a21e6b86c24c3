//! `Entry` and `EntryKind`: message, call start, turn end, summary, unknown, corrupt.

use std::fmt;

use advisor_core::{CallStart, Message, MessageContent, PendingCall, Role, Text, TurnEnd, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One entry of a conversation's log.
///
/// Its JSON form is one object with `seq`, `turn`, `entry` and, where a branch starts, `parent`. `entry` holds the
/// form of the [`EntryKind`]; it is nested because an unknown kind may have any fields. A message's
/// [round](Self::round) is stored with its kind.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The sequence number: 1 for the first entry, without gaps.
    pub seq: u64,
    /// The turn it belongs to. The entries of a turn are consecutive on their branch.
    pub turn: TurnId,
    /// The entry it follows, if that is not the one before it; a branch starts here.
    pub parent: Option<EntryId>,
    /// The content.
    pub kind: EntryKind,
    /// The round of its turn that an answer or a result belongs to. With the positions of the calls in the answer, it
    /// gives their [`CallKey`](advisor_core::CallKey)s.
    ///
    /// `None` for the input of a turn, for messages that a hook added, for other entries, and for those of a
    /// conversation that was imported without rounds.
    pub round: Option<u32>,
}

/// The content of an [`Entry`].
///
/// It serialises as `{"format": …, "kind": …, "value": …}`. An entry of an unknown kind or a newer format is read
/// as [`EntryKind::Unknown`] and written back unchanged.
///
/// # Example
/// ```
/// use conversation_store::EntryKind;
///
/// let newer = r#"{"format":7,"kind":"mood","value":"cheerful"}"#;
/// let read: EntryKind = serde_json::from_str(newer)?;
/// assert!(matches!(read, EntryKind::Unknown(_)));
/// assert_eq!(serde_json::to_string(&read)?, newer);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A final message.
    Message(Message),
    /// A call of the last answer is about to run, and its tool must not run twice
    /// ([`Effect::AtMostOnce`](advisor_core::Effect)). It is never sent to the model and does not open or close
    /// the turn. A call with this entry and no result was started; its outcome is unknown.
    CallStarted(CallStart),
    /// A call of the last answer waits for a person. It is never sent to the model and does not open or close the turn.
    CallPending(PendingCall),
    /// The turn has ended. If messages of the turn follow, it is open again until its next end.
    TurnEnded(TurnEnd),
    /// A summary of earlier turns, which a memory sends instead of its oldest ones. It does not open or close a
    /// turn.
    Summary(Summary),
    /// An entry that a newer version wrote, unchanged.
    Unknown(Map<String, Value>),
    /// The bytes of an entry that cannot be read; empty if the entry is missing in the store. Stores keep and
    /// return it; it is never sent to the model.
    ///
    /// Its JSON value is a text, or `{"base64": …}` if the bytes are not UTF-8.
    Corrupt(Vec<u8>),
}

impl Entry {
    /// Creates the entry with number `seq` of a log.
    #[must_use]
    pub fn new(seq: u64, turn: TurnId, kind: EntryKind) -> Self {
        Self { seq, turn, parent: None, kind, round: None }
    }

    /// Returns the entry it follows on its branch. That is always an earlier one, even if damaged data name another.
    #[must_use]
    pub fn follows(&self) -> EntryId {
        let before = EntryId(self.seq.saturating_sub(1));
        self.parent.map_or(before, |parent| parent.min(before))
    }
}

impl From<Message> for EntryKind {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}

impl EntryKind {
    /// The maximum depth of an entry's JSON form. Deeper ones are refused as
    /// [`TooDeep`](crate::StoreError::TooDeep).
    ///
    /// `serde_json` reads 127 levels, and an exported line adds one level around its entry.
    pub const MAX_DEPTH: usize = 126;

    /// Returns the name of the kind for errors.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Message(message) => match message.role() {
                Role::System => "a system message",
                Role::User => "a user message",
                Role::Assistant => "an answer",
                Role::Tool => "a tool result",
            },
            Self::CallStarted(_) => "the start of a call",
            Self::CallPending(_) => "a pending call",
            Self::TurnEnded(_) => "the end of a turn",
            Self::Summary(_) => "a summary",
            Self::Unknown(_) => "an entry of an unknown kind",
            Self::Corrupt(_) => "a damaged entry",
        }
    }

    /// Returns the message, if it is one.
    #[must_use]
    pub fn as_message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            _ => None,
        }
    }
}

/// A summary of the beginning of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs, reason = "memory makes it")]
pub struct Summary {
    /// The sequence number of the last entry that it covers. That entry is the last of its turn.
    pub until: u64,
    /// The text.
    pub text: Text,
}

impl From<&str> for Summary {
    /// Creates a summary that covers no stored entry.
    fn from(text: &str) -> Self {
        Self { until: 0, text: text.into() }
    }
}

impl EntryKind {
    /// Returns a label without content, for journals and logs.
    ///
    /// Such as `user`, `assistant(c1,c2)` with the ids of its calls, `started(c1)`, `result(c1)`, `pending`, `summary` or `end`.
    #[must_use]
    pub fn label(&self) -> String {
        let message = match self {
            Self::Message(message) => message,
            Self::CallStarted(start) => return format!("started({})", start.call_id),
            Self::CallPending(_) => return "pending".into(),
            Self::TurnEnded(_) => return "end".into(),
            Self::Summary(_) => return "summary".into(),
            Self::Corrupt(_) => return "corrupt".into(),
            Self::Unknown(_) => return "unknown".into(),
        };
        match message.content() {
            MessageContent::System(_) => "system".into(),
            MessageContent::User(_) => "user".into(),
            MessageContent::Assistant(_) => {
                let calls: Vec<_> = message.tool_calls().map(|call| call.id.as_str()).collect();
                format!("assistant({})", calls.join(","))
            }
            MessageContent::Tool(result) => format!("result({})", result.call_id),
            _ => "unknown".into(),
        }
    }
}

/// The version of a conversation: the sequence number of its last entry, 0 if it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Version(pub u64);

/// The sequence number of an entry in its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntryId(pub u64);

/// The number of a lease. It grows with every holder of a conversation, so that a previous holder can be
/// distinguished from its successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FencingToken(pub u64);

impl Version {
    /// The version of a conversation without entries.
    pub const EMPTY: Self = Self(0);

    /// Returns the version after `entries` more entries.
    #[must_use]
    pub fn after(self, entries: usize) -> Self {
        Self(self.0.saturating_add(u64::try_from(entries).unwrap_or(u64::MAX)))
    }
}

impl EntryId {
    /// The position before the first entry.
    pub const BEGINNING: Self = Self(0);
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_parent_never_makes_entry_follow_later_one() {
        let follows = |seq, parent: Option<u64>| {
            let turn = TurnId::new("t").unwrap();
            let kind = EntryKind::Corrupt(Vec::new());
            let entry = Entry { parent: parent.map(EntryId), ..Entry::new(seq, turn, kind) };
            entry.follows().0
        };
        assert_eq!(follows(5, None), 4);
        assert_eq!(follows(5, Some(2)), 2);
        assert_eq!(follows(5, Some(0)), 0);
        assert_eq!(follows(5, Some(9)), 4);
        assert_eq!(follows(1, Some(3)), 0);
    }
}
