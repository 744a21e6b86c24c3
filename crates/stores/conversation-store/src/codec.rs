//! The JSON form of entries, and the check that it can be read back.

use advisor_core::TurnId;
use advisor_core::json::{has_reserved_name, nests_within};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Entry, EntryId, EntryKind, Result, StoreError};

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
        let entry = BodyRef { kind: &self.kind, round: self.round };
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
        Ok(Self { seq, turn, parent, kind: entry.kind, round: entry.round })
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

impl EntryKind {
    /// Checks that every store can read this back.
    ///
    /// Reading it back would prove the same, but parse all texts a second time.
    ///
    /// Only JSON values of callers can be nested too deep or have reserved names. Each value is visited in place,
    /// and never deeper than the limit.
    pub(crate) fn validate(&self) -> Result {
        let kind = self.name();
        let reserved = "a name of a member begins with `$serde_json::private::`";
        let unreadable = |what| Err(StoreError::Unreadable { kind, what });
        // The entry is itself a level.
        let check = |levels: usize, value: &Value| match Self::MAX_DEPTH - 1 - levels {
            within if !nests_within(value, within) => {
                Err(StoreError::TooDeep { kind, limit: Self::MAX_DEPTH })
            }
            _ if has_reserved_name(value) => unreadable(reserved),
            _ => Ok(()),
        };
        match self {
            Self::Message(message) => {
                message.json_values().try_for_each(|(levels, value)| check(levels, value))
            }
            Self::Unknown(raw) if !is_unknown(raw) => {
                unreadable("it is no entry of an unknown kind or newer format")
            }
            Self::Unknown(raw) => {
                let names: Map<_, _> = raw.keys().map(|name| (name.clone(), Value::Null)).collect();
                if has_reserved_name(&Value::Object(names)) {
                    return unreadable(reserved);
                }
                raw.values().try_for_each(|value| check(0, value))
            }
            Self::CallStarted(_)
            | Self::CallPending(_)
            | Self::TurnEnded(_)
            | Self::Summary(_)
            | Self::Corrupt(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{any_kind, turn};
    use crate::{Entry, NewEntry};
    use advisor_core::{
        Block, BlockContent, CallKey, CallStart, FinishReason, Media, Message, Opaque, Part, PendingCall,
        ProviderData, ToolCall, ToolResult, TurnEnd,
    };
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use serde_json::json;

    fn round_trip(kind: EntryKind) {
        let entry = Entry::new(7, TurnId::new("t").unwrap(), kind);
        let json = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<Entry>(&json).unwrap(), entry, "{json}");
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
    fn unknown_kinds_and_newer_formats_round_trip() {
        for raw in [
            json!({"format": 1, "kind": "mood", "value": [1, 2.5, null]}),
            json!({"format": 2, "kind": "message", "value": {"x": 1}, "more": "y"}),
            json!({"format": 9, "kind": "mood", "seq": 1, "turn": "u", "parent": 3, "entry": {}}),
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
        let message = EntryKind::Message(Message::user("u"));
        let entry = Entry { round: Some(3), ..Entry::new(7, turn(), message) };
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
            assert_eq!((read.round, &read.kind), (None, &entry.kind), "the message counts all the same");
        }
    }

    #[test]
    fn only_messages_have_a_round() {
        let unknown = json!({"format": 9, "kind": "mood", "round": 3});
        for kind in [serde_json::from_value(unknown).unwrap(), EntryKind::Summary("s".into())] {
            assert_eq!(NewEntry::new(turn("t"), kind.clone()).with_round(3).round, None);
            round_trip(kind);
        }
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
                EntryKind::CallPending(PendingCall { key: key(), definition: "0a".into() }),
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

    const RESERVED: &str = "$serde_json::private::";

    /// Returns the depth of a JSON text, as a parser counts it.
    fn depth_of(json: &str) -> usize {
        let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
        for byte in json.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'[' | b'{' if !quoted => (depth, deepest) = (depth + 1, deepest.max(depth + 1)),
                b']' | b'}' if !quoted => depth -= 1,
                _ => {}
            }
        }
        deepest
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,4}|[\\[\\]{}\"\\\\]{0,4}".prop_map(Value::from),
        ];
        let name = prop_oneof![
            9 => "[a-c$\\[\\]\"\\\\]{0,3}",
            1 => Just(format!("{RESERVED}RawValue")),
            1 => Just(format!("{RESERVED}Number")),
        ];
        leaf.prop_recursive(8, 64, 4, move |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::from),
                btree_map(name.clone(), inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Values that are nested as deep as an entry may be, or almost, and shallow ones.
    fn any_deep_json() -> impl Strategy<Value = Value> {
        let levels = prop_oneof![Just(0), 112..EntryKind::MAX_DEPTH];
        (any_json(), levels, any::<bool>()).prop_map(|(value, levels, in_lists)| {
            (0..levels).fold(value, |value, _| if in_lists { json!([value]) } else { json!({ "a": value }) })
        })
    }

    fn any_parts() -> impl Strategy<Value = Vec<Part>> {
        let other = [Part::Text("[[".into()), Part::File(Media::from_bytes("text/plain", vec![0xFF; 3]))];
        vec(
            prop_oneof![2 => any_deep_json().prop_map(Part::Json), 1 => prop::sample::select(other.to_vec())],
            0..3,
        )
    }

    fn any_block() -> impl Strategy<Value = Block> {
        let other = vec![
            BlockContent::Text("[[".into()),
            BlockContent::Reasoning("{{".into()),
            BlockContent::Refusal("\"[".into()),
            BlockContent::Media(Media::from_url("image/png", "https://example.org/[[.png")),
            BlockContent::Citation(Default::default()),
            BlockContent::ToolCall(ToolCall::new("c", "f", "[[[[")),
        ];
        let opaque = any_deep_json().prop_map(|value| BlockContent::Opaque(Opaque::new("f", "n", value)));
        let data = vec(any_deep_json().prop_map(|value| ProviderData::new("f", value)), 0..2);
        (prop_oneof![opaque, prop::sample::select(other)], data)
            .prop_map(|(content, data)| Block::with_data(content, data))
    }

    /// Entries of every kind, with JSON wherever it may be.
    fn any_entry() -> impl Strategy<Value = EntryKind> {
        let unknown = |members: Vec<(String, Value)>| {
            let own = [("format".into(), 9.into()), ("kind".into(), "mood".into())];
            EntryKind::Unknown(members.into_iter().chain(own).collect())
        };
        let name = prop_oneof![9 => "[a-c]{1,2}", 1 => Just(format!("{RESERVED}RawValue"))];
        let result = |parts| Message::tool(ToolResult::new(&ToolCall::new("c", "f", ""), parts));
        prop_oneof![
            any_parts().prop_map(|parts| Message::user_parts(parts).into()),
            any_parts().prop_map(move |parts| result(parts).into()),
            vec(any_block(), 0..3).prop_map(|blocks| Message::assistant_blocks(blocks).into()),
            vec((name, any_deep_json()), 0..3).prop_map(unknown),
            any_kind(),
        ]
    }

    /// Such a value can come from a caller, not from JSON text.
    #[test]
    fn law_r1_unknown_entry_of_any_depth_is_refused() {
        let deep = (0..500_000).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        let members = [("format", 9.into()), ("kind", "mood".into()), ("value", deep)];
        let entry =
            EntryKind::Unknown(members.into_iter().map(|(name, value)| (name.into(), value)).collect());
        let refused = entry.validate();
        // Dropping it would visit every level.
        std::mem::forget(entry);
        assert!(matches!(refused, Err(StoreError::TooDeep { .. })), "{refused:?}");
    }

    proptest! {
        #[test]
        fn accepted_json_is_read_back_unchanged(value in any_json(), levels in 0_usize..9) {
            let json = value.to_string();
            prop_assert_eq!(nests_within(&value, levels), depth_of(&json) <= levels);
            if has_reserved_name(&value) {
                prop_assert!(json.contains(RESERVED));
            } else {
                prop_assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
            }
        }

        #[test]
        fn entry_is_accepted_exactly_if_it_is_read_back(kind in any_entry()) {
            let entry = Entry::new(1, turn("t"), kind);
            let depth = depth_of(&serde_json::to_string(&entry.kind).unwrap());
            let json = serde_json::to_string(&entry).unwrap();
            let read = serde_json::from_str::<Entry>(&json).ok();
            match entry.kind.validate() {
                Ok(()) => {
                    prop_assert!(depth <= EntryKind::MAX_DEPTH);
                    prop_assert_eq!(read, Some(entry));
                }
                Err(StoreError::TooDeep { .. }) => {
                    prop_assert!(depth > EntryKind::MAX_DEPTH);
                    prop_assert_eq!(read, None);
                }
                Err(refused) => prop_assert!(json.contains(RESERVED), "{refused}"),
            }
        }
    }

    #[test]
    fn only_names_are_reserved() {
        assert!(has_reserved_name(&json!({"a": [{"$serde_json::private::X": 1}]})));
        assert!(!has_reserved_name(&json!({"a": ["$serde_json::private::X"]})));
    }
}
