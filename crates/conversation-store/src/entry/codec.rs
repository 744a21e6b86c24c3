//! The JSON form of entries.

use advisor_core::TurnId;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Entry, EntryId, EntryKind};

/// The format that this version writes. A change that this version cannot read, even deep inside a message, needs
/// a higher number. A new kind does not: older versions keep an unknown kind as it is. Nor does a new member
/// beside `value`, which older versions ignore.
const FORMAT: u64 = 1;

/// The part of an entry that a store keeps beside its number and turn, as read.
pub(crate) struct Body {
    pub(crate) kind: EntryKind,
    /// The round of a message, if the writing version recorded one.
    pub(crate) round: Option<u32>,
}

/// The borrowed form of the same part, for writing.
pub(crate) struct BodyRef<'a> {
    pub(crate) kind: &'a EntryKind,
    pub(crate) round: Option<u32>,
}

impl Body {
    fn read(mut raw: Map<String, Value>) -> Result<Self, &'static str> {
        let Some(read) = reader(&raw)? else {
            return Ok(Self { kind: EntryKind::Unknown(raw), round: None });
        };
        // The parser's error may quote the conversation, so it is dropped.
        let kind = read(raw.remove("value").unwrap_or_default())
            .map_err(|_| "the value of an entry cannot be read")?;
        let round = raw.get("round").and_then(Value::as_u64).and_then(|round| u32::try_from(round).ok());
        Ok(Self { round: round.filter(|_| kind.as_message().is_some()), kind })
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Serialize for BodyRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let round = self.round;
        match self.kind {
            EntryKind::Message(message) => {
                Written { round, ..Written::new("message", message) }.serialize(serializer)
            }
            EntryKind::CallStarted(start) => Written::new("call_started", start).serialize(serializer),
            EntryKind::CallPending(call) => Written::new("call_pending", call).serialize(serializer),
            EntryKind::TurnEnded(end) => Written::new("turn_ended", end).serialize(serializer),
            EntryKind::Summary(summary) => Written::new("summary", summary).serialize(serializer),
            EntryKind::Unknown(raw) => raw.serialize(serializer),
            EntryKind::Corrupt(raw) => {
                Written::new("corrupt", &WrittenBytes::from(raw)).serialize(serializer)
            }
        }
    }
}

impl Serialize for EntryKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        BodyRef { kind: self, round: None }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for EntryKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Body::deserialize(deserializer)?.kind)
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            seq: u64,
            turn: &'a TurnId,
            #[serde(skip_serializing_if = "Option::is_none")]
            parent: Option<EntryId>,
            entry: BodyRef<'a>,
        }
        let entry = BodyRef { kind: &self.kind, round: self.round() };
        Form { seq: self.seq, turn: &self.turn, parent: self.parent, entry }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Form {
            seq: u64,
            turn: TurnId,
            #[serde(default)]
            parent: Option<EntryId>,
            entry: Body,
        }
        let Form { seq, turn, parent, entry } = Form::deserialize(deserializer)?;
        Ok(Self { parent, ..Self::new(seq, turn, entry.kind).with_round(entry.round) })
    }
}

type ReadValue = fn(Value) -> serde_json::Result<EntryKind>;

/// Returns how to read the value of this entry; `None` if the kind is unknown or the format newer.
fn reader(raw: &Map<String, Value>) -> Result<Option<ReadValue>, &'static str> {
    let format = raw.get("format").and_then(Value::as_u64).ok_or("an entry has no format number")?;
    let kind = raw.get("kind").and_then(Value::as_str).ok_or("an entry has no kind")?;
    Ok(Some(match kind {
        _ if format > FORMAT => return Ok(None),
        "message" => |value| serde_json::from_value(value).map(EntryKind::Message),
        "call_started" => |value| serde_json::from_value(value).map(EntryKind::CallStarted),
        "call_pending" => |value| serde_json::from_value(value).map(EntryKind::CallPending),
        "turn_ended" => |value| serde_json::from_value(value).map(EntryKind::TurnEnded),
        "summary" => |value| serde_json::from_value(value).map(EntryKind::Summary),
        "corrupt" => |value| serde_json::from_value::<WrittenBytes>(value)?.read().map(EntryKind::Corrupt),
        _ => return Ok(None),
    }))
}

/// Returns whether this is read as [`EntryKind::Unknown`].
pub(crate) fn is_unknown(raw: &Map<String, Value>) -> bool {
    matches!(reader(raw), Ok(None))
}

#[derive(Serialize)]
struct Written<'a, T> {
    format: u64,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    round: Option<u32>,
    value: &'a T,
}

impl<'a, T> Written<'a, T> {
    fn new(kind: &'static str, value: &'a T) -> Self {
        Self { format: FORMAT, kind, round: None, value }
    }
}

/// The JSON form of bytes that may be text.
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
    use advisor_core::{
        Block, CallKey, CallStart, FinishReason, Message, PendingCall, ToolCall, ToolResult, TurnEnd,
    };
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
        round_trip(EntryKind::CallStarted(CallStart::new(key.clone(), "c1")));
        round_trip(EntryKind::CallPending(PendingCall::new(key, "0a")));
        round_trip(EntryKind::Summary("short".into()));
        round_trip(EntryKind::Corrupt(b"half an en".into()));
        round_trip(EntryKind::Corrupt(vec![0xFF, 0, 0xFE]));
        round_trip(EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Other("odd".into()))));
        round_trip(EntryKind::TurnEnded(TurnEnd::Failed { partial: "a".into() }));
        round_trip(EntryKind::TurnEnded(TurnEnd::Refused));
        round_trip(EntryKind::TurnEnded(TurnEnd::Interrupted { partial: "".into() }));
        round_trip(EntryKind::TurnEnded(TurnEnd::RolledBack));
    }

    #[test]
    fn end_of_turn_keeps_its_stored_form() {
        let other = FinishReason::Other("odd".into());
        for (end, form) in [
            (TurnEnd::Completed(FinishReason::Stop), r#"{"end":"completed","finish":"stop"}"#),
            (TurnEnd::Completed(other), r#"{"end":"completed","finish":{"other":"odd"}}"#),
            (TurnEnd::Failed { partial: "a".into() }, r#"{"end":"failed","partial":"a"}"#),
            (TurnEnd::Interrupted { partial: "".into() }, r#"{"end":"interrupted","partial":""}"#),
            (TurnEnd::Refused, r#"{"end":"refused"}"#),
            (TurnEnd::RolledBack, r#"{"end":"rolled_back"}"#),
        ] {
            let json = format!(r#"{{"format":1,"kind":"turn_ended","value":{form}}}"#);
            let kind = EntryKind::TurnEnded(end);
            assert_eq!(serde_json::to_string(&kind).unwrap(), json);
            assert_eq!(serde_json::from_str::<EntryKind>(&json).unwrap(), kind);
        }
    }

    #[test]
    fn unknown_kind_may_reuse_entry_field_names() {
        let raw = json!({"format": 9, "kind": "mood", "seq": 1, "turn": "u", "parent": 3, "entry": {}});
        round_trip(serde_json::from_value(raw).unwrap());
    }

    #[test]
    fn unknown_kinds_and_newer_formats_round_trip() {
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
    fn message_round_is_stored_beside_its_value() {
        let turn = || TurnId::new("t").unwrap();
        let entry = Entry::new(7, turn(), EntryKind::Message(Message::user("u"))).with_round(3);
        let value = json!({"role": "user", "content": [{"type": "text", "value": "u"}]});
        let written = json!({"format": 1, "kind": "message", "round": 3, "value": value});
        let written = json!({"seq": 7, "turn": "t", "entry": written});
        assert_eq!(serde_json::to_value(&entry).unwrap(), written);
        assert_eq!(serde_json::from_value::<Entry>(written.clone()).unwrap(), entry);
        assert_eq!(serde_json::from_value::<EntryKind>(written["entry"].clone()).unwrap(), entry.kind);
        for no_round in [json!(null), json!("3"), json!(-1), json!(u64::from(u32::MAX) + 1), json!([3])] {
            let mut odd = written.clone();
            odd["entry"]["round"] = no_round;
            let read: Entry = serde_json::from_value(odd).unwrap();
            assert_eq!((read.round(), &read.kind), (None, &entry.kind), "the message counts all the same");
        }
    }

    #[test]
    fn only_messages_have_a_round() {
        let turn = || TurnId::new("t").unwrap();
        let unknown = json!({"format": 9, "kind": "mood", "round": 3});
        let corrupt = EntryKind::Corrupt(b"x".into());
        for kind in
            [serde_json::from_value(unknown.clone()).unwrap(), corrupt, EntryKind::Summary("s".into())]
        {
            let entry = Entry::new(7, turn(), kind.clone()).with_round(3);
            assert_eq!(entry, Entry::new(7, turn(), kind), "it has no place in its form");
            assert_eq!(entry.round(), None);
            round_trip(entry.kind);
        }
        assert_eq!(
            serde_json::to_value(serde_json::from_value::<EntryKind>(unknown.clone()).unwrap()).unwrap(),
            unknown
        );
    }

    #[test]
    fn states_of_calls_have_own_kinds_that_older_versions_keep() {
        let key = || CallKey::new(TurnId::new("t").unwrap(), 3, 1);
        for (kind, name, value) in [
            (
                EntryKind::CallStarted(CallStart::new(key(), "c1")),
                "call_started",
                json!({"key": "t/3/1", "call_id": "c1"}),
            ),
            (
                EntryKind::CallPending(PendingCall::new(key(), "0a")),
                "call_pending",
                json!({"key": "t/3/1", "definition": "0a"}),
            ),
        ] {
            let entry = Entry::new(7, TurnId::new("t").unwrap(), kind);
            let written = json!({"format": 1, "kind": name, "value": value});
            let written = json!({"seq": 7, "turn": "t", "entry": written});
            assert_eq!(serde_json::to_value(&entry).unwrap(), written);
        }
    }

    #[test]
    fn unreadable_entry_error_quotes_nothing() {
        let broken = json!({"format": 1, "kind": "message", "value": "secret"});
        let broken = json!({"seq": 1, "turn": "t", "entry": broken});
        let error = serde_json::from_value::<Entry>(broken).unwrap_err().to_string();
        assert!(error.contains("cannot be read") && !error.contains("secret"), "{error}");
        assert!(serde_json::from_value::<EntryKind>(json!({"kind": "message"})).is_err());
        assert!(serde_json::from_value::<EntryKind>(json!({"format": 1})).is_err());
    }
}
