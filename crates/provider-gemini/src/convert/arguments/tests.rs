//! Tests of `convert::arguments`.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;

/// The text after each of these pieces, and at the end.
fn written(pieces: &[Value]) -> Vec<String> {
    let mut arguments = Arguments::default();
    let mut all: Vec<String> = Vec::new();
    for piece in pieces {
        let json = piece.to_string();
        let json: &RawValue = serde_json::from_str(&json).expect("JSON");
        all.push(arguments.piece(&Object::read(json).expect("an object")).0);
    }
    all.push(arguments.close());
    all
}

fn number(path: &str) -> Value {
    json!({"jsonPath": path, "numberValue": 1})
}

#[test]
fn containers_open_and_close_where_paths_part() {
    let cases = [
        (vec![], vec![""]),
        (vec![number("$.a"), number("$.b")], vec!["{\"a\":1", ",\"b\":1", "}"]),
        (
            vec![number("$.a.b.c"), number("$.a.b.d"), number("$.a.e"), number("$.f[0]"), number("$.f[1].g")],
            vec!["{\"a\":{\"b\":{\"c\":1", ",\"d\":1", "},\"e\":1", "},\"f\":[1", ",{\"g\":1", "}]}"],
        ),
        (vec![number("$['\"']"), number("$.a[0][0]")], vec!["{\"\\\"\":1", ",\"a\":[[1", "]]}"]),
    ];
    for (pieces, expected) in cases {
        assert_eq!(written(&pieces), expected, "{pieces:?}");
    }
}

#[test]
fn string_ends_by_itself_with_the_next_value_or_with_the_call() {
    let string =
        |path: &str, text: &str| json!({"jsonPath": path, "stringValue": text, "willContinue": true});
    let cases = [
        (
            vec![string("$.a", "x"), json!({"jsonPath": "$.a", "stringValue": "y"})],
            vec!["{\"a\":\"x", "y\"", "}"],
        ),
        (vec![string("$.a", "x"), number("$.b")], vec!["{\"a\":\"x", "\",\"b\":1", "}"]),
        (vec![string("$.a", "x")], vec!["{\"a\":\"x", "\"}"]),
    ];
    for (pieces, expected) in cases {
        assert_eq!(written(&pieces), expected, "{pieces:?}");
    }
}

#[test]
fn misplaced_piece_leaves_a_bracket_open() {
    for (before, misplaced) in [
        (vec![], "a"),
        (vec![], "$"),
        (vec![], "$[0]"),
        (vec![number("$.a")], "$.a"),
        (vec![number("$.a[0]")], "$.a[0]"),
        (vec![number("$.a[0]")], "$.a[2]"),
        (vec![number("$.a.b"), number("$.c")], "$.a.d"),
    ] {
        // A list as the whole arguments is written, and refused as no object later.
        let pieces: Vec<Value> = before.into_iter().chain([number(misplaced), number("$.z")]).collect();
        let text = written(&pieces).concat();
        let is_object = serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object());
        assert!(!is_object && !text.is_empty(), "{text}");
    }
}

#[test]
fn whole_arguments_take_no_pieces() {
    let mut arguments = Arguments::default();
    assert_eq!((arguments.whole("{}"), arguments.close()), ("{}".to_owned(), String::new()));
    assert_eq!((arguments.whole("{}"), arguments.whole("{}")), ("{".to_owned(), String::new()));
}
