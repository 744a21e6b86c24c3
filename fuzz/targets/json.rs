//! Checks the readers of JSON that a server or a model wrote: the reader of events, arguments of calls, and strings
//! that are decoded while they arrive.
//!
//! The input is a digit (seed of the split), then the text.
#![no_main]

use std::borrow::Cow;

use advisor_fuzz::Script;
use advisor_testkit::split::random_splits;
use libfuzzer_sys::fuzz_target;
use provider_http::json::{Json, Str, arguments, count, is_nothing, read, value};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use text_tool_calls::JsonStringFields;

const FIELDS: [&str; 2] = ["path", "content"];

fuzz_target!(|script: &[u8]| {
    let mut script = Script::new(script);
    let seed = script.number() as u64;
    let text = String::from_utf8_lossy(script.rest()).into_owned();
    assert_read(&text);
    assert_sent_as_object(&text);
    if let Ok(value) = serde_json::from_str(&text) {
        assert_lenient(&text, &value);
    }

    let fields = fields(&[&text]);
    let letters: Vec<&str> = text.split("").collect();
    let split = random_splits(text.as_bytes(), seed, 1).next();
    let cut = split.map(|split| split.pieces.iter().map(|piece| String::from_utf8_lossy(piece)).collect());
    let cut: Vec<Cow<'_, str>> = cut.filter(|pieces: &Vec<_>| pieces.concat() == text).unwrap_or_default();
    for pieces in [letters, cut.iter().map(AsRef::as_ref).collect()] {
        assert!(pieces.is_empty() || self::fields(&pieces) == fields, "{} pieces", pieces.len());
    }
    if let (Cow::Borrowed(_), Ok(object)) = (arguments::as_text(&text), serde_json::from_str(&text)) {
        assert_fields(&fields, &object);
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
    assert_eq!(arguments::as_object(&arguments::from_value(&read)), arguments::as_object(text));
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

/// The text of each field so far, and whether it has ended.
type Fields = [Option<(String, bool)>; 2];

fn fields(pieces: &[&str]) -> Fields {
    let mut reader = JsonStringFields::new(FIELDS);
    let mut found = Fields::default();
    for piece in pieces.iter().flat_map(|piece| reader.push(piece)) {
        let place = FIELDS.iter().position(|name| piece.field == **name).expect("a field that was asked for");
        let (text, ended) = found[place].get_or_insert_default();
        assert!(!*ended, "a field ends once");
        text.push_str(&piece.text);
        *ended = piece.is_end;
    }
    found
}

/// The fields are the string members of the object, which repeats no name.
fn assert_fields(fields: &Fields, object: &Map<String, Value>) {
    for (name, found) in FIELDS.iter().zip(fields) {
        let known = object.get(*name).and_then(Value::as_str).map(|text| (text.to_owned(), true));
        assert_eq!(*found, known, "{name}");
    }
}
