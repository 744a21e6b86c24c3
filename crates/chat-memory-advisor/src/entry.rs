use advisor_core::{CallStart, FinishReason, Message, Text, TurnEnd, TurnId};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{EntryId, Summary};

/// One entry of a conversation's log.
///
/// Its serialised form is one JSON object: `seq`, `turn`, where a branch begins `parent`, and in `entry` the form of
/// its [`EntryKind`], which stands apart, since nobody knows the fields of an unknown kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// Its place in the log: 1 for the first entry, without gaps.
    pub seq: u64,
    /// The turn it belongs to. The entries of a turn stand together on their branch.
    pub turn: TurnId,
    /// The entry it follows, where that is not the one before it: here a branch begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<EntryId>,
    /// What it says.
    #[serde(rename = "entry")]
    pub kind: EntryKind,
}

/// What an [`Entry`] says.
///
/// It serialises as `{"format": …, "kind": …, "value": …}`. An entry of an unknown kind or of a newer
/// format is read as [`EntryKind::Unknown`] and written back as it came.
///
/// # Example
/// ```
/// use chat_memory_advisor::EntryKind;
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
    /// What was said before, in short: what a [`Summarizer`](crate::Summarizer) made. It leaves a turn as open as it
    /// was.
    Summary(Summary),
    /// Something that a newer version wrote, as it was written.
    Unknown(Map<String, Value>),
    /// Something that cannot be read, as it stands in the store; nothing, if the entry is missing there. It is
    /// kept and given back, and left out of what is sent.
    ///
    /// As JSON its value is a text, or `{"base64": …}` where it is none.
    Corrupt(Vec<u8>),
}

/// The format that this version writes. A version that adds anything that this one cannot read, be it
/// deep inside a message, writes a higher number. A new kind needs none: who does not know it keeps it as it came.
const FORMAT: u64 = 1;

impl Entry {
    /// The entry at place `seq` of a log.
    #[must_use]
    pub fn new(seq: u64, turn: TurnId, kind: EntryKind) -> Self {
        Self { seq, turn, parent: None, kind }
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

impl EntryKind {
    /// The message, if it is one.
    #[must_use]
    pub fn as_message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            _ => None,
        }
    }

    fn read(mut raw: Map<String, Value>) -> Result<Self, &'static str> {
        let format = raw.get("format").and_then(Value::as_u64).ok_or("an entry has no format number")?;
        let kind = raw.get("kind").and_then(Value::as_str).ok_or("an entry has no kind")?;
        let read: fn(Value) -> serde_json::Result<Self> = match kind {
            _ if format > FORMAT => return Ok(Self::Unknown(raw)),
            "message" => |value| serde_json::from_value(value).map(Self::Message),
            "call_started" => |value| serde_json::from_value(value).map(Self::CallStarted),
            "turn_ended" => |value| serde_json::from_value::<WrittenEnd>(value).map(Self::from),
            "summary" => |value| serde_json::from_value(value).map(Self::Summary),
            "corrupt" => |value| serde_json::from_value::<WrittenBytes>(value)?.read().map(Self::Corrupt),
            _ => return Ok(Self::Unknown(raw)),
        };
        // What the parser says may quote the conversation, so it is not passed on.
        read(raw.remove("value").unwrap_or_default()).map_err(|_| "the value of an entry cannot be read")
    }
}

impl Serialize for EntryKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Message(message) => Written::new("message", message).serialize(serializer),
            Self::CallStarted(start) => Written::new("call_started", start).serialize(serializer),
            Self::TurnEnded(end) => Written::new("turn_ended", &WrittenEnd::from(end)).serialize(serializer),
            Self::Summary(summary) => Written::new("summary", summary).serialize(serializer),
            Self::Unknown(raw) => raw.serialize(serializer),
            Self::Corrupt(raw) => Written::new("corrupt", &WrittenBytes::from(raw)).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for EntryKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[derive(Serialize)]
struct Written<'a, T> {
    format: u64,
    kind: &'static str,
    value: &'a T,
}

impl<'a, T> Written<'a, T> {
    fn new(kind: &'static str, value: &'a T) -> Self {
        Self { format: FORMAT, kind, value }
    }
}

/// How the end of a turn is written.
#[derive(Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
enum WrittenEnd {
    Completed { finish: FinishReason },
    Failed { partial: Text },
    Interrupted { partial: Text },
    RolledBack,
}

impl From<&TurnEnd> for WrittenEnd {
    fn from(end: &TurnEnd) -> Self {
        match end.clone() {
            TurnEnd::Completed(finish) => Self::Completed { finish },
            TurnEnd::Failed { partial } => Self::Failed { partial },
            TurnEnd::Interrupted { partial } => Self::Interrupted { partial },
            TurnEnd::RolledBack => Self::RolledBack,
            // An end that this crate does not know yet leaves no answer to show.
            _ => Self::Failed { partial: Text::default() },
        }
    }
}

impl From<WrittenEnd> for EntryKind {
    fn from(end: WrittenEnd) -> Self {
        Self::TurnEnded(match end {
            WrittenEnd::Completed { finish } => TurnEnd::Completed(finish),
            WrittenEnd::Failed { partial } => TurnEnd::Failed { partial },
            WrittenEnd::Interrupted { partial } => TurnEnd::Interrupted { partial },
            WrittenEnd::RolledBack => TurnEnd::RolledBack,
        })
    }
}

/// How bytes are written that may be a text.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenBytes {
    Text(String),
    Bytes { base64: String },
}

impl WrittenBytes {
    fn read(self) -> serde_json::Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.into_bytes()),
            Self::Bytes { base64 } => BASE64_STANDARD.decode(base64).map_err(serde_json::Error::custom),
        }
    }
}

impl From<&Vec<u8>> for WrittenBytes {
    fn from(bytes: &Vec<u8>) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.into()),
            Err(_) => Self::Bytes { base64: BASE64_STANDARD.encode(bytes) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use advisor_core::{Block, CallKey, ToolCall, ToolResult};
    use serde_json::json;

    fn round_trip(kind: EntryKind) {
        let entry = Entry::new(7, TurnId::new("t").unwrap(), kind);
        let json = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<Entry>(&json).unwrap(), entry, "{json}");
    }

    #[test]
    fn every_kind_survives_a_round_trip() {
        let call = ToolCall::new("c1", "f", "{\"a\":");
        round_trip(EntryKind::Message(Message::user("a\u{0}\u{1F980}")));
        round_trip(EntryKind::Message(Message::assistant_blocks(vec![
            Block::text("t"),
            Block::from(call.clone()),
        ])));
        round_trip(EntryKind::Message(Message::tool(ToolResult::error(&call, "no"))));
        let key = CallKey::new(TurnId::new("t").unwrap(), 3, 1);
        round_trip(EntryKind::CallStarted(CallStart::new(key, "c1")));
        round_trip(EntryKind::Summary("short".into()));
        round_trip(EntryKind::Corrupt(b"half an en".into()));
        round_trip(EntryKind::Corrupt(vec![0xFF, 0, 0xFE]));
        round_trip(EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Other("odd".into()))));
        round_trip(EntryKind::TurnEnded(TurnEnd::Failed { partial: "a".into() }));
        round_trip(EntryKind::TurnEnded(TurnEnd::Interrupted { partial: "".into() }));
        round_trip(EntryKind::TurnEnded(TurnEnd::RolledBack));
    }

    #[test]
    fn an_unknown_kind_may_have_fields_named_as_those_of_an_entry() {
        let raw = json!({"format": 9, "kind": "mood", "seq": 1, "turn": "u", "parent": 3, "entry": {}});
        round_trip(serde_json::from_value(raw).unwrap());
    }

    #[test]
    fn unknown_kinds_and_newer_formats_are_written_back_as_they_came() {
        for raw in [
            json!({"format": 1, "kind": "mood", "value": [1, 2.5, null]}),
            json!({"format": 2, "kind": "message", "value": {"x": 1}, "more": "y"}),
        ] {
            let raw = json!({"seq": 1, "turn": "t", "entry": raw});
            let entry: Entry = serde_json::from_value(raw.clone()).unwrap();
            assert!(matches!(entry.kind, EntryKind::Unknown(_)), "{entry:?}");
            assert_eq!(serde_json::to_value(&entry).unwrap(), raw);
        }
    }

    #[test]
    fn a_start_is_written_as_a_kind_of_its_own_that_older_versions_keep() {
        let key = CallKey::new(TurnId::new("t").unwrap(), 3, 1);
        let entry =
            Entry::new(7, TurnId::new("t").unwrap(), EntryKind::CallStarted(CallStart::new(key, "c1")));
        let value = json!({"key": "t/3/1", "call_id": "c1"});
        let written = json!({"format": 1, "kind": "call_started", "value": value});
        let written = json!({"seq": 7, "turn": "t", "entry": written});
        assert_eq!(serde_json::to_value(&entry).unwrap(), written);
    }

    #[test]
    fn what_cannot_be_read_is_an_error_that_quotes_nothing() {
        let broken = json!({"format": 1, "kind": "message", "value": "secret"});
        let broken = json!({"seq": 1, "turn": "t", "entry": broken});
        let error = serde_json::from_value::<Entry>(broken).unwrap_err().to_string();
        assert!(error.contains("cannot be read") && !error.contains("secret"), "{error}");
        assert!(serde_json::from_value::<EntryKind>(json!({"kind": "message"})).is_err());
        assert!(serde_json::from_value::<EntryKind>(json!({"format": 1})).is_err());
    }
}
