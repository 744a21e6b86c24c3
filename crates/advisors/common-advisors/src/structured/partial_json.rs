//! `partial_json`: the value of an unfinished JSON text.

use serde_json::Value;

/// An open object or list.
struct Container {
    /// The character that closes it.
    closer: char,
    /// Whether its next string is a key.
    wants_key: bool,
}

/// Returns the value in an incomplete JSON text, if it has one.
///
/// Strings may be incomplete. A key without a value, and an incomplete number or literal, are left out.
pub(crate) fn partial_json(text: &str) -> Option<Value> {
    // The open containers, outermost first.
    let mut open: Vec<Container> = Vec::new();
    // The beginning of the string that is open, unless it is a key.
    let mut string = None;
    let (mut in_string, mut escaped) = (false, false);
    // Up to where the text can be closed, and the number of containers open there.
    let mut safe = (0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' if in_string => {
                in_string = false;
                if string.take().is_some() {
                    safe = (at + 1, open.len());
                }
            }
            b'"' => {
                in_string = true;
                let is_key = open.last().is_some_and(|container| container.wants_key);
                string = (!is_key).then_some(at + 1);
            }
            _ if in_string => {}
            b'{' | b'[' => {
                let is_object = byte == b'{';
                open.push(Container { closer: if is_object { '}' } else { ']' }, wants_key: is_object });
                safe = (at + 1, open.len());
            }
            b'}' | b']' => {
                open.pop();
                safe = (at + 1, open.len());
            }
            b':' => {
                if let Some(container) = open.last_mut() {
                    container.wants_key = false;
                }
            }
            b',' => {
                // A value before a comma is complete, even a number or a literal.
                safe = (at, open.len());
                if let Some(container) = open.last_mut() {
                    container.wants_key = container.closer == '}';
                }
            }
            _ => {}
        }
    }
    match string {
        Some(begin) => whole_escapes(text, begin).find_map(|end| closed(text.get(..end)?, "\"", &open)),
        None => closed(text.get(..safe.0)?, "", open.get(..safe.1)?),
    }
}

/// Returns the places at which an open string may be cut so that no escape is incomplete, the last one first: its end,
/// and those before its last two escapes, which may be the halves of one character.
fn whole_escapes(text: &str, begin: usize) -> impl Iterator<Item = usize> {
    let before = move |end: &usize| text.get(begin..*end)?.rfind('\\').map(|at| begin + at);
    std::iter::successors(Some(text.len()), before).take(3)
}

/// Parses a text with its open containers closed.
fn closed(text: &str, quote: &str, open: &[Container]) -> Option<Value> {
    let closers = open.iter().rev().map(|container| container.closer);
    let mut whole = format!("{text}{quote}");
    whole.extend(closers);
    serde_json::from_str(&whole).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn partial_value_has_all_received_fields() {
        for (text, expected) in [
            ("", None),
            ("{", Some(json!({}))),
            ("{\"na", Some(json!({}))),
            ("{\"name\"", Some(json!({}))),
            ("{\"name\":", Some(json!({}))),
            ("{\"name\": \"An", Some(json!({"name": "An"}))),
            ("{\"name\": \"An\\", Some(json!({"name": "An"}))),
            ("{\"name\": \"An\\u00e", Some(json!({"name": "An"}))),
            ("{\"name\": \"An\\u00e9", Some(json!({"name": "Ané"}))),
            ("{\"name\": \"An\\ud83d", Some(json!({"name": "An"}))),
            ("{\"name\": \"An\\ud83d\\ude", Some(json!({"name": "An"}))),
            ("{\"name\": \"An\\ud83d\\ude00", Some(json!({"name": "An😀"}))),
            ("{\"name\": \"Ann\", \"ag", Some(json!({"name": "Ann"}))),
            ("{\"name\": \"Ann\", \"age\": 4", Some(json!({"name": "Ann"}))),
            ("{\"name\": \"Ann\", \"age\": 41,", Some(json!({"name": "Ann", "age": 41}))),
            ("{\"a\": [1, 2", Some(json!({"a": [1]}))),
            ("{\"a\": [1, {\"b\": tru", Some(json!({"a": [1, {}]}))),
            ("{\"a\": [{}], \"b\": {\"c\": \"x\"}}", Some(json!({"a": [{}], "b": {"c": "x"}}))),
        ] {
            assert_eq!(partial_json(text), expected, "{text}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a\"\\\\é😀\n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a\"é]{0,3}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Checks whether `early` can become `late`: strings are extended, lists and objects get more elements.
    fn grows(early: &Value, late: &Value) -> bool {
        match (early, late) {
            (Value::String(early), Value::String(late)) => late.starts_with(early.as_str()),
            (Value::Array(early), Value::Array(late)) => {
                early.len() <= late.len() && early.iter().zip(late).all(|(early, late)| grows(early, late))
            }
            (Value::Object(early), Value::Object(late)) => {
                early.iter().all(|(key, early)| late.get(key).is_some_and(|late| grows(early, late)))
            }
            (early, late) => early == late,
        }
    }

    proptest! {
        #[test]
        fn every_prefix_yields_value_that_grows_to_whole(value in value(), pretty in any::<bool>()) {
            let whole = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let (whole, mut last) = (whole.unwrap(), None);
            for end in (0..=whole.len()).filter(|end| whole.is_char_boundary(*end)) {
                let partial = partial_json(&whole[..end]);
                if let (Some(early), Some(late)) = (&last, &partial) {
                    prop_assert!(grows(early, late), "{early} {late}");
                }
                prop_assert!(last.is_none() || partial.is_some(), "{}", &whole[..end]);
                last = partial.or(last);
            }
            if whole.starts_with(['{', '[', '"']) {
                prop_assert_eq!(last, Some(value));
            }
        }

        #[test]
        fn no_text_is_too_odd(text in "[\\[\\]{}\",:\\\\u0-9a-ftrn é]{0,40}") {
            let _ = partial_json(&text);
        }
    }
}
