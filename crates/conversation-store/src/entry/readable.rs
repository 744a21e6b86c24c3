//! Checks that stores can read an entry back, without serialising it.

use advisor_core::json::{has_reserved_name, is_reserved_name, nests_within};
use serde_json::Value;

use crate::entry::codec::is_unknown;
use crate::{EntryKind, Result, StoreError};

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
            Self::Unknown(raw) if raw.keys().any(|name| is_reserved_name(name)) => unreadable(reserved),
            Self::Unknown(raw) => raw.values().try_for_each(|value| check(0, value)),
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
    use advisor_core::{
        Block, BlockContent, Media, Message, Opaque, Part, ProviderData, ToolCall, ToolResult,
    };
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::Entry;
    use crate::test_logs::{any_kind, turn};

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

    proptest! {
        #[test]
        fn d16_accepted_json_is_read_back_unchanged(value in any_json(), levels in 0_usize..9) {
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
