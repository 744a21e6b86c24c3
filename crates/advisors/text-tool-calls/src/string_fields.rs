//! `JsonStringFields`: decodes chosen members of a JSON object while it arrives.

use std::fmt;

use advisor_core::Text;

/// The bytes of a member's name beyond which it is no known one.
const MAX_NAME: usize = 256;

/// Decodes chosen string members of a JSON object while its text arrives, such as a file's content in the
/// arguments of a call.
///
/// Only members of the outermost object count, and of two of one name the first. Text that is no JSON gives no
/// values, or parts of the values before the fault.
pub(crate) struct JsonStringFields {
    pub(crate) fields: Vec<StringField>,
    depth: usize,
    expects_key: bool,
    /// The last key of the outermost object, until its value begins.
    key: String,
    string: Option<InString>,
}

/// A member and its value so far.
pub(crate) struct StringField {
    pub(crate) name: Text,
    /// The decoded characters. Their reader may take them.
    pub(crate) value: String,
    pub(crate) is_complete: bool,
}

/// A string that has begun.
struct InString {
    is_escaped: bool,
    decoder: StringDecoder,
    purpose: Purpose,
}

#[derive(Clone, Copy)]
enum Purpose {
    Key,
    /// The value of the field at this place.
    Field(usize),
    Other,
}

impl JsonStringFields {
    /// Creates a decoder of these members.
    pub(crate) fn new<T: Into<Text>>(names: impl IntoIterator<Item = T>) -> Self {
        let field = |name: T| StringField { name: name.into(), value: String::new(), is_complete: false };
        let fields = names.into_iter().map(field).collect();
        Self { fields, depth: 0, expects_key: false, key: String::new(), string: None }
    }

    /// Reads the next characters of the object.
    pub(crate) fn push(&mut self, json: &str) {
        for letter in json.chars() {
            if self.string.is_some() {
                self.push_in_string(letter);
            } else {
                self.push_outside_strings(letter);
            }
        }
    }

    fn push_outside_strings(&mut self, letter: char) {
        match letter {
            '"' => {
                let purpose = self.purpose();
                self.string =
                    Some(InString { is_escaped: false, decoder: StringDecoder::default(), purpose });
            }
            '{' | '[' => {
                self.depth += 1;
                self.expects_key = letter == '{' && self.depth == 1;
                self.key.clear();
            }
            '}' | ']' => self.depth = self.depth.saturating_sub(1),
            ',' => {
                self.expects_key = self.depth == 1;
                self.key.clear();
            }
            ':' => self.expects_key = false,
            _ => {}
        }
    }

    /// Returns the purpose of a string that begins.
    fn purpose(&mut self) -> Purpose {
        if self.expects_key {
            return Purpose::Key;
        }
        let key = std::mem::take(&mut self.key);
        let is_wanted = |field: &StringField| *field.name == *key && !field.is_complete;
        let place = self.fields.iter().position(is_wanted).filter(|_| self.depth == 1);
        place.map_or(Purpose::Other, Purpose::Field)
    }

    fn push_in_string(&mut self, letter: char) {
        let Some(string) = &mut self.string else { return };
        let ends = letter == '"' && !string.is_escaped;
        string.is_escaped = letter == '\\' && !string.is_escaped;
        let text = match string.purpose {
            Purpose::Key => Some(&mut self.key).filter(|key| key.len() < MAX_NAME),
            Purpose::Field(place) => self.fields.get_mut(place).map(|field| {
                field.is_complete = ends;
                &mut field.value
            }),
            Purpose::Other => None,
        };
        match text {
            Some(text) if ends => string.decoder.end(text),
            Some(text) => string.decoder.push(letter, text),
            None => {}
        }
        if ends {
            self.string = None;
        }
    }
}

/// Values are content, so they are left out.
impl fmt::Debug for JsonStringFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.fields.iter().map(|field| &field.name);
        f.debug_struct("JsonStringFields").field("names", &names.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// Decodes the characters of a JSON string that arrive one by one, without its quotes.
///
/// Half of a surrogate pair becomes U+FFFD. An escape that JSON does not know stays as it is.
#[derive(Default)]
struct StringDecoder {
    /// The escape that has begun: `\n`, `\u00e9`, or the two of a surrogate pair.
    escape: String,
}

impl StringDecoder {
    fn push(&mut self, letter: char, out: &mut String) {
        if self.escape.is_empty() && letter != '\\' {
            return out.push(letter);
        }
        self.escape.push(letter);
        if may_go_on(&self.escape) {
            return;
        }
        let escape = std::mem::take(&mut self.escape);
        if let Ok(decoded) = serde_json::from_str::<String>(&format!("\"{escape}\"")) {
            out.push_str(&decoded);
        } else if let Some(code) = escape.strip_prefix("\\u") {
            out.push(char::REPLACEMENT_CHARACTER);
            code.chars().skip(hex_digits(code)).for_each(|letter| self.push(letter, out));
        } else {
            out.push_str(&escape);
        }
    }

    /// Ends the string.
    fn end(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.escape).is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Checks whether an escape needs more characters.
fn may_go_on(escape: &str) -> bool {
    let is_part = |text: &str| match text.strip_prefix("\\u") {
        Some(code) => code.len() < 4 && hex_digits(code) == code.len(),
        None => "\\u".starts_with(text),
    };
    match escape.split_at_checked(6) {
        // The first half of a surrogate pair.
        Some((unit, next)) => {
            let code = unit.get(2..).and_then(|code| u16::from_str_radix(code, 16).ok());
            code.is_some_and(|code| (0xD800..0xDC00).contains(&code)) && is_part(next)
        }
        None => is_part(escape),
    }
}

/// Returns the number of hexadecimal digits at the start of a text, at most four.
fn hex_digits(text: &str) -> usize {
    text.bytes().take(4).take_while(u8::is_ascii_hexdigit).count()
}

/// Returns the decoded text of a JSON string, which is given without its quotes.
pub(crate) fn decoded(text: &str) -> String {
    let (mut decoder, mut out) = (StringDecoder::default(), String::new());
    text.chars().for_each(|letter| decoder.push(letter, &mut out));
    decoder.end(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Returns the values of two members, each with whether it is complete.
    fn read(pieces: &[&str]) -> [(String, bool); 2] {
        let mut fields = JsonStringFields::new(["path", "content"]);
        pieces.iter().for_each(|json| fields.push(json));
        let mut read = fields.fields.into_iter().map(|field| (field.value, field.is_complete));
        [(); 2].map(|()| read.next().unwrap())
    }

    #[test]
    fn only_members_of_the_outermost_object_count() {
        for (json, path, content) in [
            (r#"{"a": {"path": "x"}, "path" : "p\"", "path": "q"}"#, ("p\"", true), ("", false)),
            (r#"{"content": "c", "list": ["path", "x"], "path": ""}"#, ("", true), ("c", true)),
            (r#"{"con\u0074ent": "a\ud83d\ude00"#, ("", false), ("a😀", false)),
            (r#"{"path": 7, "x": "y", "content": null}"#, ("", false), ("", false)),
            (r#"["path", "x"]"#, ("", false), ("", false)),
        ] {
            let expected = [path, content].map(|(value, is_complete)| (value.to_owned(), is_complete));
            assert_eq!(read(&[json]), expected, "{json}");
            let letters: Vec<String> = json.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(read(&letters), expected, "{json}");
        }
    }

    #[test]
    fn escapes_are_decoded_and_broken_ones_replaced() {
        for (text, expected) in [
            (r#"a\"b\\c\/\n\t\r\b\f"#, "a\"b\\c/\n\t\r\u{8}\u{c}"),
            (r"\u00e9\ud83d\ude00", "é😀"),
            (r"\ud83d!", "\u{fffd}!"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
            (r"\ude00", "\u{fffd}"),
            (r"\u12x", "\u{fffd}x"),
            (r"\u12é", "\u{fffd}é"),
            (r"\d", "\\d"),
            (r"\ud83d", "\u{fffd}"),
            ("\\", "\u{fffd}"),
        ] {
            assert_eq!(decoded(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn law_s5_any_split_gives_the_decoded_text(
            content in any::<String>(),
            ascii in any::<bool>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut json = json!({"x": "y", "content": content}).to_string();
            if ascii {
                json = json.chars().map(|letter| match letter {
                    letter if letter.is_ascii() => letter.to_string(),
                    letter => letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
                }).collect();
            }
            let at = json.floor_char_boundary(cut.index(json.len() + 1));
            let [_, read] = read(&[&json[..at], &json[at..]]);
            prop_assert_eq!(read, (content, true));
        }
    }
}
