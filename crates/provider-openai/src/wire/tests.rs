//! Tests of `wire`.

use serde_json::{Value, json};

use super::*;

fn call(json: &str) -> ToolCall<'_> {
    serde_json::from_str(json).expect("a tool call")
}

#[test]
fn texts_are_borrowed_and_odd_ones_converted() {
    let cases: &[(&str, Option<&str>)] = &[
        (r#""plain""#, Some("plain")),
        (r#""esc\"aped""#, Some("esc\"aped")),
        (r#""""#, None),
        ("null", None),
        ("7", Some("7")),
        ("-7", Some("-7")),
        ("1.5", Some("1.5")),
        ("true", Some("true")),
        ("[1,[2]]", None),
        (r#"{"a":{"b":1}}"#, None),
    ];
    for (json, expected) in cases {
        let text: Str<'_> = serde_json::from_str(json).expect("any JSON will do");
        assert_eq!(text.text(), *expected, "{json}");
    }
}

#[test]
fn numbers_are_whole_or_absent() {
    let cases = [
        ("7", Some(7)),
        ("-1", Some(-1)),
        ("7.0", Some(7)),
        ("7.5", None),
        (r#""7""#, Some(7)),
        (r#""x""#, None),
        ("1e300", None),
        ("18446744073709551615", None),
        ("null", None),
        ("true", None),
        ("[1]", None),
        (r#"{"a":1}"#, None),
    ];
    for (json, expected) in cases {
        let number: Number = serde_json::from_str(json).expect("any JSON will do");
        assert_eq!(number, Number(expected), "{json}");
    }
}

#[test]
fn every_field_may_be_absent_or_null() {
    let null_fields =
        r#"{"id":null,"model":null,"choices":null,"usage":null,"x_groq":null,"error":null,"citations":null}"#;
    let null_choice = r#"{"choices":[{"index":null,"delta":null,"message":null,"finish_reason":null,"usage":null,"error":null}]}"#;
    let null_delta = r#"{"choices":[{"delta":{"content":null,"reasoning_content":null,"reasoning":null,"reasoning_details":null,
        "refusal":null,"tool_calls":null,"function_call":null,"annotations":null,"images":null,"audio":null,"executed_tools":null,"role":null}}]}"#;
    let null_call = r#"{"choices":[{"delta":{"tool_calls":[null,{},{"index":null,"id":null,"type":null,"function":null},
        {"function":{"name":null,"arguments":null}}]}}]}"#;
    for json in ["{}", null_fields, null_choice, null_delta, null_call] {
        serde_json::from_str::<Event<'_>>(json).expect(json);
    }
}

#[test]
fn any_field_may_be_any_json() {
    let odd = [
        "null", "true", "0", "-1", "1.5", r#""""#, r#""x""#, "[]", "{}", "[null,7,[],{}]",
        r#"{"a":{"b":[1]}}"#,
    ];
    let places: [(&str, &[&str]); 8] = [
        ("{}", &["id", "model", "choices", "usage", "x_groq", "error", "citations", "other"]),
        (r#"{"choices":[{}]}"#, &["index", "delta", "message", "finish_reason", "usage", "error", "other"]),
        (
            r#"{"choices":[{"delta":{}}]}"#,
            &[
                "content", "reasoning_content", "reasoning", "reasoning_details", "refusal", "tool_calls",
                "function_call", "annotations", "images", "audio", "executed_tools", "other",
            ],
        ),
        (r#"{"choices":[{"delta":{"content":[{}]}}]}"#, &["type", "text", "refusal", "thinking", "other"]),
        (r#"{"choices":[{"message":{"tool_calls":[{}]}}]}"#, &["index", "id", "type", "function", "other"]),
        (r#"{"choices":[{"delta":{"tool_calls":[{"function":{}}]}}]}"#, &["name", "arguments", "other"]),
        (
            r#"{"usage":{}}"#,
            &["prompt_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details"],
        ),
        (r#"{"x_groq":{}}"#, &["id", "usage", "error"]),
    ];
    for (event, fields) in places {
        for field in fields {
            for value in odd {
                // The innermost object is the empty one.
                let json = event.replacen("{}", &format!("{{\"{field}\":{value}}}"), 1);
                if let Err(error) = serde_json::from_str::<Event<'_>>(&json) {
                    panic!("{json}: {error}");
                }
            }
        }
    }
}

#[test]
fn arguments_are_text_or_json_as_received() {
    let cases = [
        (r#""{\"a\":1}""#, Some(r#"{"a":1}"#)),
        (r#"{"b":1, "a" : [1.50, {"x":"\u00e9"}]}"#, Some(r#"{"b":1,"a":[1.50, {"x":"\u00e9"}]}"#)),
        ("{}", Some("{}")),
        ("[1, 2]", Some("[1,2]")),
        ("7", Some("7")),
        (r#""""#, None),
        ("null", None),
    ];
    for (arguments, expected) in cases {
        let json = format!(r#"{{"function":{{"name":"f","arguments":{arguments}}}}}"#);
        assert_eq!(call(&json).function.arguments.text(), expected, "{json}");
    }
}

#[test]
fn unknown_call_fields_are_kept() {
    let call = call(
        r#"{"index":-1,"id":"c","type":"function","extra_content":{"google":{"thought_signature":"s"}},"nothing":null,
            "function":{"name":"f","arguments":"{}","provider_specific_fields":{"a":1}}}"#,
    );
    assert_eq!(call.index, CallIndex::Number(-1));
    assert_eq!(Value::Object(call.extras), json!({"extra_content": {"google": {"thought_signature": "s"}}}));
    assert_eq!(Value::Object(call.function.extras), json!({"provider_specific_fields": {"a": 1}}));
}

#[test]
fn content_is_a_text_or_parts() {
    let event: Event<'_> = serde_json::from_str(
        r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[{"type":"text","text":"b"}]},7]}}]}"#,
    )
    .expect("an event");
    let delta =
        event.choices.into_iter().flat_map(Few::into_iter).find_map(|choice| choice.delta).expect("a delta");
    let Content::Parts(parts) = delta.content else { panic!("a list") };
    let read: Vec<_> = parts.iter().map(|part| (part.fields.text.text(), &*part.fields.thinking.0)).collect();
    assert_eq!(read, [(Some("a"), ""), (None, "b"), (None, "")]);
    for odd in ["{}", "true", "null"] {
        let content: Content<'_> = serde_json::from_str(odd).expect("any JSON will do");
        assert!(matches!(content, Content::Absent), "{odd}");
    }
}

#[test]
fn empty_and_false_values_count_as_absent() {
    for (json, nothing) in [
        ("null", true),
        ("false", true),
        (r#""""#, true),
        ("[ ]", true),
        ("{\n}", true),
        ("0", true),
        ("1", false),
        ("true", false),
        (r#""x""#, false),
        ("[0]", false),
        (r#"{"a":1}"#, false),
    ] {
        let raw: &RawValue = serde_json::from_str(json).expect("JSON");
        assert_eq!(is_nothing(raw), nothing, "{json}");
    }
}

#[test]
fn usage_is_read_under_every_name() {
    let usage = |json: &str| serde_json::from_str::<TokenCounts>(json).expect("counts").to_usage();
    assert_eq!(usage("{}"), None);
    assert_eq!(usage(r#"{"prompt_tokens":null,"total_tokens":null}"#), None);
    let all = usage(
        r#"{"prompt_tokens":10,"completion_tokens":5.0,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},
            "completion_tokens_details":{"reasoning_tokens":3}}"#,
    )
    .expect("some");
    assert_eq!((all.input_tokens, all.output_tokens, all.total_tokens), (Some(10), Some(5), Some(15)));
    assert_eq!(
        (all.cached_input_tokens, all.cache_write_tokens, all.reasoning_tokens),
        (Some(4), Some(2), Some(3))
    );
    for name in ["prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"] {
        let cached = usage(&format!(r#"{{"{name}":9}}"#)).expect("some");
        assert_eq!(cached.cached_input_tokens, Some(9), "{name}");
    }
    let written = usage(r#"{"cache_creation_input_tokens":9,"prompt_tokens_details":null}"#).expect("some");
    assert_eq!(written.cache_write_tokens, Some(9));
}

/// Collects the fields that a struct asks for.
struct FieldsOf<'a>(&'a mut Vec<&'static str>);

impl<'de> serde::Deserializer<'de> for FieldsOf<'_> {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: serde::de::Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(serde::de::Error::custom("only structs say what they read"))
    }

    fn deserialize_struct<V: serde::de::Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.extend(fields);
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Returns the fields that a struct reads.
pub(crate) fn fields_of<T: Deserialize<'static>>() -> Vec<&'static str> {
    let mut fields = Vec::new();
    let _ = T::deserialize(FieldsOf(&mut fields));
    fields
}

#[test]
fn the_keys_are_those_that_are_read() {
    let keys = |fields: &[(&'static str, Field)]| fields.iter().map(|(key, _)| *key).collect::<Vec<_>>();
    assert_eq!(fields_of::<Event<'static>>(), keys(EVENT_FIELDS));
    assert_eq!(fields_of::<Choice<'static>>(), keys(CHOICE_FIELDS));
    assert_eq!(fields_of::<Delta<'static>>(), keys(DELTA_FIELDS));
}
