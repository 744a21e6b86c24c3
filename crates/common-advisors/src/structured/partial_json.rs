//! `partial_json`: the value of an unfinished JSON text.

use serde_json::Value;

/// Returns the value in an incomplete JSON text, if it has one.
///
/// Strings may be incomplete. A key without a value, and an incomplete number or literal, are left out.
pub(crate) fn partial_json(text: &str) -> Option<Value> {
    let mut scan = Scan::default();
    for (at, byte) in text.bytes().enumerate() {
        scan.step(at, byte);
    }
    let (end, closers) = scan.end(text);
    let mut whole = text.get(..end)?.to_owned();
    whole.extend(closers.iter().rev());
    serde_json::from_str(&whole).ok()
}

/// Position at which a text can be cut and closed, found in one pass.
#[derive(Default)]
struct Scan {
    /// The open containers, outermost first.
    open: Vec<Container>,
    string: Option<StringAt>,
    /// Up to which byte the text can be closed, and the number of containers open there.
    safe: (usize, usize),
}

struct Container {
    /// The character that closes it.
    closer: char,
    /// Whether its next string is a key.
    wants_key: bool,
}

struct StringAt {
    is_key: bool,
    escape: Escape,
    /// Whether a high surrogate was escaped, and its low surrogate is missing.
    half: bool,
    /// Up to here no character or escape is incomplete.
    whole: usize,
}

enum Escape {
    None,
    Begun,
    /// The digits received of a character's code.
    Code {
        digits: u8,
        code: u32,
    },
}

impl Scan {
    fn step(&mut self, at: usize, byte: u8) {
        if let Some(string) = &mut self.string {
            if string.step(at, byte) {
                let is_key = string.is_key;
                self.string = None;
                if !is_key {
                    self.safe = (at + 1, self.open.len());
                }
            }
        } else {
            self.step_outside_strings(at, byte);
        }
    }

    fn step_outside_strings(&mut self, at: usize, byte: u8) {
        match byte {
            b'"' => {
                let is_key = self.open.last().is_some_and(|container| container.wants_key);
                self.string = Some(StringAt { is_key, escape: Escape::None, half: false, whole: at + 1 });
            }
            b'{' | b'[' => {
                let is_object = byte == b'{';
                let closer = if is_object { '}' } else { ']' };
                self.open.push(Container { closer, wants_key: is_object });
                self.safe = (at + 1, self.open.len());
            }
            b'}' | b']' => {
                self.open.pop();
                self.safe = (at + 1, self.open.len());
            }
            b':' => {
                if let Some(container) = self.open.last_mut() {
                    container.wants_key = false;
                }
            }
            b',' => {
                // A value before a comma is complete, even a number or a literal.
                self.safe = (at, self.open.len());
                if let Some(container) = self.open.last_mut() {
                    container.wants_key = container.closer == '}';
                }
            }
            _ => {}
        }
    }

    /// Returns where to cut the text, and the characters that close it there.
    fn end(self, text: &str) -> (usize, Vec<char>) {
        let closers = self.open.iter().map(|container| container.closer);
        match self.string {
            Some(string) if !string.is_key => (string.whole.min(text.len()), closers.chain(['"']).collect()),
            _ => (self.safe.0, closers.take(self.safe.1).collect()),
        }
    }
}

impl StringAt {
    /// Takes the next byte. Returns whether it ends the string.
    fn step(&mut self, at: usize, byte: u8) -> bool {
        self.escape = match (&self.escape, byte) {
            (Escape::None, b'"') => return true,
            (Escape::None, b'\\') => Escape::Begun,
            (Escape::Begun, b'u') => Escape::Code { digits: 0, code: 0 },
            (Escape::Code { digits, code }, digit) => {
                let code = code * 16 + char::from(digit).to_digit(16).unwrap_or_default();
                if *digits < 3 {
                    Escape::Code { digits: digits + 1, code }
                } else {
                    self.half = (0xD800..0xDC00).contains(&code);
                    Escape::None
                }
            }
            (Escape::None | Escape::Begun, _) => {
                self.half = false;
                Escape::None
            }
        };
        if matches!(self.escape, Escape::None) && !self.half {
            self.whole = at + 1;
        }
        false
    }
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
