//! Arguments of calls, and other JSON that goes back to a server.
//!
//! They are written in a form that the parsers of all servers accept and read in the same way.
//!
//! Our own parser accepts more: lone surrogates in skipped values, repeated keys, and nesting that others
//! refuse. Text that a model wrote is sent again with every later request. One call that a server cannot parse
//! would make the conversation unusable.

use std::borrow::Cow;

use advisor_core::ToolCall;
use serde_json::{Map, Value, json};

use super::{Json, read};

/// The deepest nesting of JSON. It is the smallest default limit of common parsers, that of System.Text.Json. Others
/// are Ruby and protobuf (100), serde_json (127), Python and Jackson (about 1,000) and Go (10,000).
const MOST_NESTED: usize = 64;
/// The key under which arguments are sent that are no such object.
const UNPARSABLE: &str = "unparsable_arguments";

/// Returns the arguments of a call as the text of an object.
///
/// An object is returned byte for byte as the model wrote it, and empty arguments or `null` as `{}`. Of a repeated key only the
/// last value is kept, which is also the value that the tool received. Arguments that some parser refuses become
/// text in an object: `{"unparsable_arguments":"…"}`.
///
/// ```
/// use provider_http::json::arguments;
///
/// assert_eq!(arguments::as_text(r#"{"a": 1}"#), r#"{"a": 1}"#);
/// assert_eq!(arguments::as_text(""), "{}");
/// assert_eq!(arguments::as_text("null"), "{}");
/// assert_eq!(arguments::as_text(r#"{"a":"#), r#"{"unparsable_arguments":"{\"a\":"}"#);
/// ```
#[must_use]
pub fn as_text(written: &str) -> Cow<'_, str> {
    if ToolCall::gives_none(written) {
        return Cow::Borrowed("{}");
    }
    let value = serde_json::from_str(written).unwrap_or_default();
    if !matches!(value, Value::Object(_)) || nested(&value) > MOST_NESTED {
        return wrapped(written);
    }
    let mut keys = 0;
    let repeats = read(written, |json| count_keys(json, &mut keys)).is_err() || keys != keys_of(&value);
    if repeats { Cow::Owned(value.to_string()) } else { Cow::Borrowed(written) }
}

/// Returns the arguments of a call as an object, for servers that expect one. It is the one of [`as_text`].
///
/// ```
/// use provider_http::json::arguments;
/// use serde_json::json;
///
/// assert_eq!(arguments::as_object(r#"{"a": 1}"#)["a"], 1);
/// assert_eq!(arguments::as_object("[1")["unparsable_arguments"], "[1");
/// ```
#[must_use]
pub fn as_object(written: &str) -> Map<String, Value> {
    let read = serde_json::from_str(&as_text(written)).ok();
    read.unwrap_or_else(|| Map::from_iter([(UNPARSABLE.to_owned(), Value::from(written))]))
}

/// Returns the fields of a server's own data that can be sent back to it: those that are not nested too deep.
#[must_use]
pub fn fields_that_go_back(fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().filter(|(_, value)| nested(value) < MOST_NESTED).collect()
}

fn wrapped(written: &str) -> Cow<'_, str> {
    Cow::Owned(json!({ UNPARSABLE: written }).to_string())
}

/// Returns the nesting depth of a value. The parser that made the value bounds the recursion.
fn nested(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nested).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(nested).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Counts the keys of all objects, also those that are repeated.
fn count_keys<'a>(json: Json<'a>, keys: &mut usize) -> Option<Json<'a>> {
    if !json.is_object() {
        return json.list(|item| count_keys(item, keys));
    }
    json.object(|key| {
        *keys += 1;
        count_keys(key.split()?.1, keys)
    })
}

fn keys_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(keys_of).sum(),
        Value::Object(fields) => fields.len() + fields.values().map(keys_of).sum::<usize>(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn object_and_text_agree() {
        for written in [
            "", " ", "{}", r#"{"a":{"b":[1,2.5,"c"]}}"#, r#"{"a":1,"a":2}"#, "[1]", "null", "{\"a\"",
            "\"\\ud800\"",
        ] {
            let object = as_object(written);
            assert_eq!(
                Value::Object(object.clone()),
                serde_json::from_str::<Value>(&as_text(written)).expect(written)
            );
            assert_eq!(as_object(&Value::Object(object.clone()).to_string()), object, "{written}");
        }
        assert_eq!(as_text(" null "), "{}");
        let deep = format!("{}1{}", "{\"a\":".repeat(65), "}".repeat(65));
        assert_eq!(as_object(&deep)[UNPARSABLE], *deep);
    }

    proptest! {
        #[test]
        fn any_arguments_become_an_object(written in "[{}\\[\\]\":,a0 \\\\ud8e.-]{0,24}|.{0,24}") {
            let text = as_text(&written);
            let read: Value = serde_json::from_str(&text).expect("JSON");
            prop_assert_eq!(read, Value::Object(as_object(&written)));
            prop_assert_eq!(as_text(&text), &*text, "it stays as it is");
        }
    }
}
