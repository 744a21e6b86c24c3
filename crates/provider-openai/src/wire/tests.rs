//! Tests of `wire`.

use provider_http::json::read;

use super::*;

/// Reads an event, and returns what `of` finds in it.
fn read_event<R>(json: &str, of: impl FnOnce(&Event<'_>) -> R) -> R {
    let mut event = Event::default();
    read(json, |json| event.read(json)).expect(json);
    of(&event)
}

/// Reads a call, and returns what `of` finds in it.
fn read_call<R>(json: &str, of: impl FnOnce(&ToolCall<'_>) -> R) -> R {
    let mut call = ToolCall::default();
    read(json, |json| call.read(json)).expect(json);
    of(&call)
}

#[test]
fn of_equal_keys_the_last_counts() {
    let event = r#"{"choices":[{"delta":{"content":"a"}}],"choices":[{"delta":{"content":"a","content":"b",
        "tool_calls":[{"id":"c"}],"tool_calls":[{"id":"d","function":{"name":"f","arguments":"x"},"function":{"name":"g"}}]}}],
        "usage":{"prompt_tokens":1},"usage":{"completion_tokens":2}}"#;
    read_event(event, |event| {
        let (Some(choice), []) = (&event.choice, event.choices.as_slice()) else { panic!("one choice") };
        let delta = choice.piece.as_ref().expect("a delta");
        let [call] = delta.tool_calls.as_slice() else { panic!("one call") };
        assert!(delta.content.is("b") && call.id.is("d") && call.name.is("g") && call.arguments.is_empty());
        let usage = event.usage.as_ref().and_then(TokenCounts::to_usage).expect("counts");
        assert_eq!((usage.input_tokens, usage.output_tokens), (None, Some(2)));
    });
}

#[test]
fn arguments_are_text_or_json_as_received() {
    let cases = [
        (r#""{\"a\":1}""#, Some(r#"{"a":1}"#)),
        (r#"{"b":1, "a" : [1.50, {"x":"\u00e9"}]}"#, Some(r#"{"b":1, "a" : [1.50, {"x":"\u00e9"}]}"#)),
        ("{}", Some("{}")),
        ("[1, 2]", Some("[1, 2]")),
        ("7", Some("7")),
        (r#""""#, None),
        ("null", None),
    ];
    for (arguments, expected) in cases {
        let json = format!(r#"{{"function":{{"name":"f","arguments":{arguments}}}}}"#);
        read_call(&json, |call| assert_eq!(call.arguments.text().as_deref(), expected, "{json}"));
    }
}

#[test]
fn usage_is_read_under_every_name() {
    let usage = |counts: &str| {
        read_event(&format!(r#"{{"usage":{counts}}}"#), |event| event.usage.as_ref()?.to_usage())
    };
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
