pub(crate) mod codec;
pub(crate) mod readable;
pub(crate) mod summary;

use advisor_core::{CallStart, Message, Role, TurnEnd, TurnId};
use serde_json::{Map, Value};

use crate::entry::codec::is_unknown;
use crate::entry::readable::{Unreadable, check};
use crate::{EntryId, StoreError, Summary};

/// One entry of a conversation's log.
///
/// Its serialised form is one JSON object: `seq`, `turn`, where a branch begins `parent`, and in `entry` the form of
/// its [`EntryKind`], which stands apart, since nobody knows the fields of an unknown kind. With the kind of a message
/// stands its [round](Self::round).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// Its place in the log: 1 for the first entry, without gaps.
    pub seq: u64,
    /// The turn it belongs to. The entries of a turn stand together on their branch.
    pub turn: TurnId,
    /// The entry it follows, where that is not the one before it: here a branch begins.
    pub parent: Option<EntryId>,
    /// What it says.
    pub kind: EntryKind,
    pub(crate) round: Option<u32>,
}

/// What an [`Entry`] says.
///
/// It serialises as `{"format": …, "kind": …, "value": …}`. An entry of an unknown kind or of a newer
/// format is read as [`EntryKind::Unknown`] and written back as it came.
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
    /// A message that is final.
    Message(Message),
    /// A call of the last answer is about to run, and its tool must not run twice
    /// ([`Effect::AtMostOnce`](advisor_core::Effect)). It is never sent, and the turn is as open as it was before.
    /// A call that has it and no result was started, and nobody knows what became of it.
    CallStarted(CallStart),
    /// The turn has ended. If messages of it follow, it has begun again, and its next end counts.
    TurnEnded(TurnEnd),
    /// What was said before, in short: what a memory sends in place of its oldest
    /// turns. It leaves a turn as open as it was.
    Summary(Summary),
    /// Something that a newer version wrote, as it was written.
    Unknown(Map<String, Value>),
    /// Something that cannot be read, as it stands in the store; nothing, if the entry is missing there. It is
    /// kept and given back, and left out of what is sent.
    ///
    /// As JSON its value is a text, or `{"base64": …}` where it is none.
    Corrupt(Vec<u8>),
}

impl Entry {
    /// The entry at place `seq` of a log.
    #[must_use]
    pub fn new(seq: u64, turn: TurnId, kind: EntryKind) -> Self {
        Self { seq, turn, parent: None, kind, round: None }
    }

    /// The same entry of this round, if it is a message; others have none.
    #[must_use]
    pub fn with_round(self, round: impl Into<Option<u32>>) -> Self {
        Self { round: round.into().filter(|_| self.kind.as_message().is_some()), ..self }
    }

    /// The round of its turn that an answer or a result belongs to; with the places of the calls in the answer it
    /// gives their [`CallKey`](advisor_core::CallKey)s.
    ///
    /// Absent for what a turn begins with, for messages that a hook added, and for entries that a version before
    /// rounds were stored has written.
    #[must_use]
    pub fn round(&self) -> Option<u32> {
        self.round.filter(|_| self.kind.as_message().is_some())
    }

    /// The entry it follows on its branch.
    #[must_use]
    pub fn follows(&self) -> EntryId {
        self.parent.unwrap_or_else(|| EntryId::new(self.seq.saturating_sub(1)))
    }

    /// Whether no entry comes before it on its branch.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.follows() == EntryId::BEGINNING
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        let place = |entry: &Self| (entry.seq, entry.parent, entry.round());
        place(self) == place(other) && self.turn == other.turn && self.kind == other.kind
    }
}

impl From<Message> for EntryKind {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}

impl EntryKind {
    /// How deep the JSON form of an entry may be nested; deeper ones are refused as
    /// [`StoreError::TooDeep`].
    ///
    /// `serde_json` reads 127 levels, and an exported line has one around its entry.
    pub const MAX_DEPTH: usize = 126;

    /// Checks that every store can read this back.
    pub(crate) fn validate(&self) -> Result<(), StoreError> {
        let kind = self.name();
        if let Self::Unknown(raw) = self
            && !is_unknown(raw)
        {
            return Err(StoreError::Unreadable {
                kind,
                what: "it is no entry of an unknown kind or newer format",
            });
        }
        check(self, Self::MAX_DEPTH).map_err(|why| match why {
            Unreadable::TooDeep => StoreError::TooDeep { kind, limit: Self::MAX_DEPTH },
            Unreadable::ReservedName => StoreError::Unreadable {
                kind,
                what: "a name of a member begins with `$serde_json::private::`",
            },
            Unreadable::NoForm => StoreError::Unreadable { kind, what: "it has no JSON form" },
        })
    }

    /// What it is called in an error.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Message(message) => match message.role() {
                Role::System => "a system message",
                Role::User => "a user message",
                Role::Assistant => "an answer",
                Role::Tool => "a tool result",
            },
            Self::CallStarted(_) => "the start of a call",
            Self::TurnEnded(_) => "the end of a turn",
            Self::Summary(_) => "a summary",
            Self::Unknown(_) => "an entry of an unknown kind",
            Self::Corrupt(_) => "a damaged entry",
        }
    }

    /// The message, if it is one.
    #[must_use]
    pub fn as_message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            _ => None,
        }
    }
}
