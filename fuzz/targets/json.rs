//! Checks the readers of JSON that a server or a model wrote: the reader of events, and arguments of calls.
#![no_main]

use libfuzzer_sys::fuzz_target;
use provider_http::json::{Json, Str, arguments, count, is_nothing, read, value};
use serde_json::Value;
use serde_json::value::RawValue;

fuzz_target!(|text: &[u8]| {
    let text = String::from_utf8_lossy(text).into_owned();
    assert_read(&text);
    assert_sent_as_object(&text);
    if let Ok(value) = serde_json::from_str(&text) {
        assert_lenient(&text, &value);
    }
});

/// The reader of events accepts JSON and nothing else, and reads the same value as `serde_json`.
fn assert_read(text: &str) {
    let (passed, own) = (read(text, Json::skip), value(text));
    assert_eq!(passed.is_ok(), own.is_ok());
    assert_eq!(passed.is_ok(), serde_json::from_str::<&RawValue>(text).is_ok());
    // `serde_json` refuses lone surrogates and numbers out of range, and reserves names.
    match serde_json::from_str::<Value>(text) {
        Ok(value) if !text.contains("$serde_json") => assert_eq!(own.ok(), Some(value)),
        _ => {}
    }
}

/// Any text can be sent as the arguments of a call, and stays the same when it comes back.
fn assert_sent_as_object(text: &str) {
    let sent = arguments::as_text(text);
    let read: Value = serde_json::from_str(&sent).expect("JSON");
    assert_eq!(read, Value::Object(arguments::as_object(text)));
    assert_eq!(arguments::as_text(&sent), sent, "it stays as it is");
    assert_eq!(arguments::as_object(&read.to_string()), arguments::as_object(text));
}

/// Valid JSON of any form can be read as any field.
fn assert_lenient(json: &str, value: &Value) {
    let (mut text, mut number) = (Str::default(), None);
    read(json, |json| json.text(&mut text)).expect("JSON");
    read(json, |json| json.number(&mut number)).expect("JSON");
    assert!(count(number).is_none_or(|count| count < 1 << 53), "counts can be added");
    match value {
        Value::String(known) => assert_eq!(text.text().unwrap_or_default(), *known),
        Value::Number(known) if known.is_i64() => assert_eq!(number, known.as_i64()),
        _ => {}
    }
    if is_nothing(json) {
        let is_empty = match value {
            Value::Null | Value::Bool(false) => true,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(true) => false,
        };
        assert!(is_empty, "{json} says something");
    }
}
