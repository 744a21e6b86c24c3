//! Odd values and odd bytes: none of them costs the user an answer.

use super::*;

/// Valid JSON that a reader of 64-bit numbers, or one with a bounded stack, may refuse.
fn odd_values() -> Vec<String> {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let mut values: Vec<String> = [
        "1e30", "-1e30", "1e400", "-1e400", "1e-400", "0.1e401", "1E+999", "1180591620717411303424",
        "18446744073709551616", "-9223372036854775809", "-0", "-3", "0.5", "\"1e400\"", "\"-7\"",
        "\"\\ud83d\"", "{\"a\":1e400}", "[1e400]", "[{\"a\":[-1e999]}]",
    ]
    .map(str::to_owned)
    .into();
    values.extend([
        "1".repeat(400),
        nested(126),
        nested(127),
        nested(128),
        nested(129),
        nested(5000),
        objects(127),
        objects(5000),
    ]);
    values
}

/// Places of a value in an event.
const PLACES: [&str; 33] = [
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
    "?",
];

#[test]
fn d20_no_value_of_a_field_costs_the_answer() {
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

#[test]
fn d20_no_value_costs_a_whole_answer() {
    for place in [
        r#"{"created":?,"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}"#,
        r#"{"choices":[{"index":?,"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}"#,
        r#"{"choices":[{"message":{"content":"Hi","extra":?},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"total_tokens":?}}"#,
    ] {
        for value in odd_values() {
            let (outcome, _) = read_with(decoder(), &[place.replace('?', &value).as_bytes()]);
            let response = outcome.expect(place);
            assert_eq!(response.text(), "Hi");
            assert_eq!(response.usage().and_then(|usage| usage.input_tokens), Some(3));
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

#[test]
fn null_or_empty_index_is_absent() {
    for nothing in ["null", "\"\""] {
        let begun = of_call(nothing, r#","id":"x","function":{"name":"read"}"#, "");
        let rest = of_call(nothing, r#","function":{"arguments":"{}"}"#, "");
        let expected = ("read".to_owned(), "{}".to_owned(), true);
        assert_eq!(called(&[&begun, &rest, STOP, DONE].concat()), [expected], "{nothing}");
    }
}

#[test]
fn d20_a_count_is_exact_or_absent() {
    let counts = [
        ("0", Some(0)),
        ("7", Some(7)),
        ("7.0", Some(7)),
        ("\"7\"", Some(7)),
        ("9007199254740991", Some(9_007_199_254_740_991)),
        ("9007199254740992", None),
        ("9223372036854775807", None),
        ("9223372036854775808", None),
        ("1180591620717411303424", None),
        ("1e30", None),
        ("1e400", None),
        ("-1", None),
        ("-1e400", None),
        ("0.5", None),
        ("\"many\"", None),
    ];
    for (written, expected) in counts {
        let usage = format!(
            "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{written},\"completion_tokens\":2}}}}\n\n"
        );
        let (outcome, _) = read([HI, &usage, STOP, DONE].concat().as_bytes());
        let usage = outcome.expect(written).usage().copied().expect("the other count");
        assert_eq!((usage.input_tokens, usage.output_tokens), (expected, Some(2)), "{written}");
    }
}

#[test]
fn d20_odd_count_beside_text_loses_only_itself() {
    for value in ["1e400", "1180591620717411303424"] {
        let event =
            HI.replace("]}\n", &format!("],\"usage\":{{\"prompt_tokens\":{value},\"total_tokens\":5}}}}\n"));
        let (outcome, _) = read([event.repeat(5).as_str(), STOP, DONE].concat().as_bytes());
        let response = outcome.expect(value);
        assert_eq!(response.text(), "Hi".repeat(5));
        let usage = response.usage().expect("a count");
        assert_eq!((usage.input_tokens, usage.total_tokens), (None, Some(5)));
    }
}

#[test]
fn d20_invalid_json_is_still_malformed() {
    for odd in [
        "1e400x", "01", "1e", "--1", "[1e400", "{\"a\":1e400", "\"\\ud83\"", "{\"a\":[}]", "+1e400",
        "[1e400,]",
    ] {
        let body = format!("{HI}data: {{\"choices\":[],\"x\":{odd}}}\n\n{STOP}{DONE}");
        assert!(matches!(kind(&body), ErrorKind::Protocol { position: Some(_) }), "{odd}");
    }
}

/// Bytes that no event stream has.
const NO_TEXT: [&[u8]; 6] =
    [b"\xff", b"\xff\xfe\n", b"data: \xff\n\n", b"data: {\"a\":\"\xc3\"}\n\n", b": \xe2\x82\n", b"\xe2"];

#[test]
fn d20_nothing_after_the_end_marker_is_an_error() {
    for complete in [
        [HI, STOP, DONE].concat(),
        [HI, DONE].concat(),
        [HI, "data: [DONE]\n"].concat(),
        [HI, "data:[DONE]\r\n"].concat(),
    ] {
        for garbage in NO_TEXT {
            let body = [complete.as_bytes(), garbage].concat();
            assert_eq!(read(&body).0.expect("complete").text(), "Hi", "{:?}", String::from_utf8_lossy(&body));
            let more = [&body, b"data: {\"error\":\"late\"}\n\n".as_slice(), garbage].concat();
            assert_eq!(read(&more).0.expect("complete").text(), "Hi", "{:?}", String::from_utf8_lossy(&more));
        }
    }
    // Usage before the garbage counts.
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n";
    let body = [[HI, STOP, DONE, usage].concat().as_bytes(), b"\xff\n\n"].concat();
    assert_eq!(read(&body).0.expect("complete").usage().and_then(|usage| usage.input_tokens), Some(3));
    // A line or an event beyond its bound is garbage, too.
    let limits = SseLimits { line: 128, event: 128 };
    for garbage in ["x".repeat(500), format!("data: {}", "x".repeat(500)), "data: x\n".repeat(100)] {
        let bounded = decoder_with(ThinkTags::AsText, limits);
        let body = [HI, STOP, DONE, &garbage].concat();
        let pieces: Vec<&[u8]> = body.as_bytes().chunks(7).collect();
        assert_eq!(read_with(bounded, &pieces).0.expect("complete").text(), "Hi");
    }
}

#[test]
fn invalid_bytes_before_end_marker_are_error() {
    for garbage in [b"data: \xff\n\n".as_slice(), b"\xff\n"] {
        for begun in [HI.to_owned(), [HI, STOP].concat()] {
            let body = [begun.as_bytes(), garbage, DONE.as_bytes()].concat();
            assert!(matches!(read(&body).0.expect_err("no text").kind(), ErrorKind::Protocol { .. }));
        }
    }
}

#[test]
fn d20_odd_values_do_not_hide_error() {
    let nested = format!("{}{}", "[".repeat(500), "]".repeat(500));
    for odd in ["1e400", "\"\\ud83d\"", "1180591620717411303424", &nested] {
        let body =
            format!(r#"{{"error":{{"message":"m","code":"context_length_exceeded","a":{odd},"a":{odd}}}}}"#);
        let report = ChatCompletions::read_report(&body).expect(odd);
        assert_eq!(
            (report.message, report.code),
            ("m".into(), Some("context_length_exceeded".into())),
            "{odd}"
        );
    }
}
