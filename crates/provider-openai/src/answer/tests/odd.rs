//! Odd values and odd bytes: none of them costs the user an answer.

use super::*;

/// Valid JSON that a reader of 64-bit numbers, or one with a bounded stack, may refuse.
fn odd_values() -> Vec<String> {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let mut values: Vec<String> = [
        "1e30", "1e400", "-1e400", "1e-400", "1E+999", "1180591620717411303424", "18446744073709551616",
        "-9223372036854775809", "-0", "-3", "0.5", "\"1e400\"", "\"-7\"", "\"\\ud83d\"", "{\"a\":1e400}",
        "[{\"a\":[-1e999]}]", "null", "true", "0", "\"\"", "\"x\"", "[]", "{}", "[null,7,[],{},\"\"]",
        "{\"a\":{\"b\":[1]}}",
    ]
    .map(str::to_owned)
    .into();
    values.extend(["1".repeat(400), nested(128), nested(129), nested(5000), objects(5000)]);
    values
}

/// Places of a value in an event.
const PLACES: [&str; 44] = [
    r#"{"usage":{"prompt_tokens":?,"completion_tokens":2}}"#,
    r#"{"usage":{"prompt_tokens":1,"completion_tokens":?}}"#,
    r#"{"usage":{"total_tokens":?}}"#,
    r#"{"usage":{"prompt_tokens_details":{"cached_tokens":?}}}"#,
    r#"{"usage":{"completion_tokens_details":{"reasoning_tokens":?}}}"#,
    r#"{"usage":{"cost":?}}"#,
    r#"{"usage":?}"#,
    r#"{"x_groq":{"usage":{"prompt_tokens":?}}}"#,
    r#"{"x_groq":?,"choices":[]}"#,
    r#"{"choices":[{"usage":{"prompt_tokens":?}}]}"#,
    r#"{"choices":[{"index":?,"delta":{}}]}"#,
    r#"{"choices":[{"delta":{},"logprobs":?}]}"#,
    r#"{"choices":[{"delta":{},"finish_reason":null,"other":?}]}"#,
    r#"{"choices":[{"delta":?}]}"#,
    r#"{"choices":[?]}"#,
    r#"{"choices":?}"#,
    r#"{"choices":[{"delta":{"role":?}}]}"#,
    r#"{"choices":[{"delta":{"reasoning_details":?}}]}"#,
    r#"{"choices":[{"delta":{"annotations":?}}]}"#,
    r#"{"choices":[{"delta":{"annotations":[{"url_citation":{"url":?}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":?}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[?]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":?}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"type":?}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"extra":?}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"extra":?}}]}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":?}]}}]}"#,
    r#"{"choices":[],"id":?}"#,
    r#"{"choices":[],"model":?}"#,
    r#"{"choices":[],"created":?}"#,
    r#"{"choices":[],"citations":?}"#,
    r#"{"type":"ping","at":?}"#,
    r#"{"choices":[{"message":?}]}"#,
    r#"{"choices":[{"finish_reason":?}]}"#,
    r#"{"choices":[{"delta":{"content":?}}]}"#,
    r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":?}]}}]}"#,
    r#"{"choices":[{"delta":{"refusal":?}}]}"#,
    r#"{"choices":[{"delta":{"reasoning":?}}]}"#,
    r#"{"choices":[{"delta":{"function_call":?}}]}"#,
    r#"{"choices":[{"delta":{"images":?}}]}"#,
    r#"{"choices":[{"delta":{"audio":?}}]}"#,
    r#"{"choices":[{"delta":{"executed_tools":?}}]}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":?}}]}}]}"#,
    "?",
];

#[test]
fn no_value_of_a_field_costs_the_answer() {
    for place in PLACES {
        for value in odd_values() {
            let event = format!("data: {}\n\n", place.replacen('?', &value, 1));
            let (outcome, _) =
                read_with(decoder(), &[[&event, HI, &event, STOP, &event, DONE].concat().as_bytes()]);
            let shown: String = event.chars().take(120).collect();
            match outcome {
                Ok(response) => assert!(response.text().contains("Hi"), "{shown}"),
                Err(error) => panic!("{shown}: {error}"),
            }
        }
    }
}

/// Spellings of call indexes, two of each kind: no whole numbers of 64 bits, or those at the very end of the
/// range.
const ODD_INDEXES: [(&str, &str); 17] = [
    ("9223372036854775808", "9223372036854775809"),
    ("-9223372036854775808", "-9223372036854775809"),
    ("-9223372036854775807", "\"9223372036854775808\""),
    ("18446744073709551615", "18446744073709551616"),
    ("1180591620717411303424", "2361183241434822606848"),
    // One floating-point number.
    ("1180591620717411303424", "1180591620717411303425"),
    ("9007199254740993.0", "9007199254740992.0"),
    ("1e30", "1E30"),
    ("0.5", "1.5"),
    ("1e400", "1e401"),
    ("\"one\"", "\"two\""),
    ("\"\\ud83d\"", "\"\\ud83e\""),
    ("true", "false"),
    ("[1e400]", "[1e401]"),
    ("{}", "[]"),
    (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
    ("[9007199254740993.0]", "[9007199254740992.0]"),
];

/// Fields beside a call with which its event is read unchanged, or in another form.
const BESIDE: [&str; 4] = ["", r#","note":"\ud83d""#, r#","note":1e400"#, r#","note":null,"note":7"#];

fn of_call(index: &str, rest: &str, beside: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index}{rest}}}]}}}}]{beside}}}\n\n"
    )
}

fn called(body: &str) -> Vec<(String, String, bool)> {
    let response = read(body.as_bytes()).0.expect(body);
    let calls = response.tool_calls().map(|(_, call)| call);
    calls.map(|call| (call.name.to_string(), call.arguments.clone(), call.complete)).collect()
}

#[test]
fn law_t6_unrepresentable_index_stays_distinct() {
    let begins = [r#","id":"x","function":{"name":"read"}"#, r#","id":"y","function":{"name":"delete_all"}"#];
    for (a, b) in ODD_INDEXES.into_iter().flat_map(|(a, b)| [(a, b), (b, a), (a, "0")]) {
        // Also in events with different other fields.
        for (first, then) in BESIDE.iter().flat_map(|first| BESIDE.map(|then| (*first, then))) {
            let begun = of_call(a, begins[0], first) + &of_call(b, begins[1], then);
            let pieces = ["{\\\"path\\\":", "\\\"a", "a", "a", "a", "a\\\"}"]
                .map(|piece| of_call(a, &format!(",\"function\":{{\"arguments\":\"{piece}\"}}"), then));
            let body =
                [begun, pieces.concat(), of_call(b, "", first), STOP.to_owned(), DONE.to_owned()].concat();
            let expected = [("read", r#"{"path":"aaaaa"}"#, true), ("delete_all", "", true)]
                .map(|(name, arguments, complete)| (name.to_owned(), arguments.to_owned(), complete));
            assert_eq!(called(&body), expected, "{a} {b} {first} {then}");
            // A piece of a call that never began belongs to none.
            let stray = body.replace(begins[0], "");
            assert!(
                !called(&stray)
                    .iter()
                    .any(|(name, arguments, _)| name == "delete_all" && !arguments.is_empty()),
                "{stray}"
            );
        }
    }
}
