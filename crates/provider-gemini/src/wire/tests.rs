//! Tests of `wire`.

use super::*;

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn compact_json_keeps_everything_but_blanks() {
    for (json, expected) in [
        (
            "{ \"b\" : 1.50,\n \"a\": [ 1 , \"x  \\\" y \\\\\" , { } ] }",
            r#"{"b":1.50,"a":[1,"x  \" y \\",{}]}"#,
        ),
        ("\"\\\\\"", "\"\\\\\""),
        (" [ \"\\u0020 \" ] ", "[\"\\u0020 \"]"),
    ] {
        assert_eq!(compact(raw(json.trim())), expected);
    }
}

#[test]
fn data_is_named_after_the_service_it_came_from() {
    for (host, format) in [
        ("generativelanguage.googleapis.com", "gemini"),
        ("Generativelanguage.Googleapis.com", "gemini"),
        ("aiplatform.googleapis.com", "gemini@aiplatform.googleapis.com"),
        ("us-east1-aiplatform.googleapis.com", "gemini@aiplatform.googleapis.com"),
        ("127.0.0.1", "gemini@127.0.0.1"),
    ] {
        assert_eq!(format_of(host), format, "{host}");
    }
}

#[test]
fn fields_of_any_form_are_read_or_absent() {
    let object =
        Object::read(raw(r#"{"a":1,"a":"x","n":null,"l":[1,{}],"o":{"t":true},"e":"","s":"\ud800!"}"#));
    let object = object.expect("an object");
    assert_eq!(object.text("a").as_deref(), Some("x"));
    assert!(object.field("n").is_none() && object.text("e").is_none() && object.text("l").is_none());
    assert_eq!((object.list("l").len(), object.list("a").len()), (2, 0));
    assert!(object.object("o").is_some_and(|inner| inner.is_true("t") && !inner.is_true("u")));
    assert!(object.object("l").is_none() && Object::read(raw("[]")).is_none());
    assert!(object.text("s").is_some_and(|text| text.ends_with('!') && text.contains('\u{fffd}')));
}
