//! Tests of `recordings::differences`.

use super::*;
use serde_json::json;

/// Returns a usual expectation with these fields set.
fn expected(fields: Value) -> Value {
    let mut expected = json!({
        "file": "x-01.sse", "api": "openai-chat", "provider": "x",
        "text": "Hello", "reasoning": null, "refusal": null, "tool_calls": [], "finish_reason": "stop", "usage": null
    });
    set(&mut expected, fields);
    expected
}

/// Returns a result that agrees with the usual expectation, with these fields set.
fn got(fields: Value) -> Value {
    let mut got = json!({
        "text": "Hello", "reasoning": null, "refusal": null, "tool_calls": [], "finish_reason": "stop",
        "usage": null, "error": null
    });
    set(&mut got, fields);
    got
}

fn set(object: &mut Value, fields: Value) {
    let Value::Object(fields) = fields else {
        panic!("fields are an object");
    };
    object.as_object_mut().unwrap().extend(fields);
}

#[track_caller]
fn check(right: Value, result: Value, found: &[&str]) {
    assert_eq!(differences(&expected(right), &got(result)), found);
}

#[test]
fn every_field_that_differs_is_named() {
    check(
        json!({"reasoning": "hm", "refusal": "no", "usage": {"input_tokens": 3, "output_tokens": 4}}),
        json!({
            "text": "hello", "reasoning": "", "refusal": null, "tool_calls": [{"id": "1", "name": "a", "arguments": ""}],
            "finish_reason": "length", "usage": {"input_tokens": 4, "output_tokens": 4}, "error": {"kind": "server"}
        }),
        &[
            "error (not null)",
            "text",
            "reasoning",
            "refusal",
            "tool_calls (1, not 0)",
            "finish_reason (\"length\", not stop)",
            "usage.input_tokens (4, not 3)",
        ],
    );
    check(json!({}), json!({"text": ["Hello"]}), &["text (neither text nor null)"]);
}

#[test]
fn expected_error_requires_error_and_preceding_text() {
    let error = json!({"raw": [{"message": "overloaded"}]});
    let failed = json!({"message": "overloaded"});
    check(
        json!({"error": error, "tool_calls": null, "finish_reason": null}),
        json!({"error": failed, "finish_reason": "error", "tool_calls": [{}]}),
        &[],
    );
    check(json!({"error": error}), json!({"error": null}), &["error (null)"]);
    check(json!({"error": error}), json!({"error": failed, "text": ""}), &["text"]);
    check(json!({"error": error, "text": ""}), json!({"error": failed, "text": "x"}), &[]);
}

#[test]
fn arguments_compare_as_json_and_ids_are_ignored() {
    let right = |arguments: &str, parsed: Value| json!({"tool_calls": [{"id": "1", "name": "f", "arguments": arguments, "arguments_json": parsed}]});
    let result =
        |arguments: Value| json!({"tool_calls": [{"id": "other", "name": "f", "arguments": arguments}]});
    let wrong = ["tool_calls[0].arguments"];
    let parsed = json!({"a": 1, "b": [2.5]});
    check(right("-", parsed.clone()), result(json!("{ \"b\":[2.5], \"a\":1}")), &[]);
    check(right("-", parsed.clone()), result(parsed.clone()), &[]);
    check(right("-", parsed.clone()), result(json!("{\"a\":2}")), &wrong);
    check(right("-", parsed), result(json!("")), &wrong);
    for none in ["", " ", "{}", "null"] {
        check(right(none, Value::Null), result(json!("")), &[]);
        check(right("", json!({})), result(json!(none)), &[]);
        check(right("", json!({})), result(Value::Null), &[]);
    }
    check(right("{\"a\": 1", Value::Null), result(json!("{\"a\": 1")), &[]);
    check(right("{\"a\": 1", Value::Null), result(json!("{\"a\":1")), &wrong);
    check(
        right("", json!({})),
        json!({"tool_calls": [{"name": "g", "arguments": ""}]}),
        &["tool_calls[0].name"],
    );
}

#[test]
fn some_apis_have_no_word_for_calls() {
    let calls = json!([{"name": "f", "arguments": "", "arguments_json": {}}]);
    let result = json!({"finish_reason": "tool_calls", "tool_calls": calls});
    let wrong = ["finish_reason (\"tool_calls\", not stop)"];
    for (api, provider, found) in [
        ("gemini", "x", &[][..]),
        ("openai-responses", "x", &[]),
        ("other", "ollama", &[]),
        ("openai-chat", "x", &wrong),
    ] {
        let right = json!({"api": api, "provider": provider, "tool_calls": calls});
        check(right, result.clone(), found);
    }
    let no_calls = json!({"api": "gemini"});
    check(no_calls, json!({"finish_reason": "tool_calls"}), &wrong);
    check(
        json!({"finish_reason": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
        json!({"finish_reason": "length"}),
        &[],
    );
}

#[test]
fn usage_compares_shared_numbers_with_separate_counts_allowed() {
    let usage = |input: u64, output: u64| json!({"usage": {"input_tokens": input, "output_tokens": output}});
    check(usage(3, 4), json!({"usage": null}), &[]);
    check(usage(3, 4), json!({"usage": {"input_tokens": null}}), &[]);
    check(usage(3, 4), usage(3, 5), &["usage.output_tokens (5, not 4)"]);
    let cached = json!({"usage": {
        "input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 5,
        "raw": {"tool_use_prompt_token_count": 2}, "output_tokens": 4, "reasoning_tokens": 7, "total_tokens": 16
    }});
    check(cached.clone(), usage(3, 4), &[]);
    check(cached.clone(), usage(20, 11), &[]);
    check(
        cached,
        usage(13, 8),
        &["usage.input_tokens (13, not 3 or 20)", "usage.output_tokens (8, not 4 or 11)"],
    );
    let steps = json!({"usage": {"input_tokens": 3, "output_tokens": 4, "raw": {"iterations": [
        {"input_tokens": 10, "cache_read_input_tokens": 20, "output_tokens": 5}, {"input_tokens": 3, "output_tokens": 4}
    ]}}});
    check(steps.clone(), usage(33, 9), &[]);
    check(steps, usage(3, 4), &[]);
    let thinking_inside = json!({"usage": {
        "input_tokens": 3, "output_tokens": 11, "reasoning_tokens": 7, "total_tokens": 14
    }});
    check(thinking_inside, usage(3, 18), &["usage.output_tokens (18, not 11)"]);
}
