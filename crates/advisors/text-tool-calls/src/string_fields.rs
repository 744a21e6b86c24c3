//! `JsonStringFields`: decodes chosen members of a JSON object while it arrives.

use std::fmt;

use advisor_core::Text;

/// The bytes of a member's name beyond which it is no known one.
const MAX_NAME: usize = 256;

/// Decodes chosen string members of a JSON object while its text arrives, such as a file's content in the
/// arguments of a call.
///
/// Only members of the outermost object count, and of two of one name the first. Text that is no JSON gives no
/// pieces, or some of the pieces before the fault.
pub(crate) struct JsonStringFields {
    fields: Vec<Text>,
    /// The members that have begun.
    begun: Vec<Text>,
    depth: usize,
    expects_key: bool,
    key: Option<Text>,
    string: Option<InString>,
}

/// A piece of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct FieldPiece {
    /// The name of the member.
    pub field: Text,
    /// The next characters of its value.
    pub text: String,
    /// Whether the value ends here.
    pub is_end: bool,
}

/// A string that has begun.
struct InString {
    is_escaped: bool,
    decoder: StringDecoder,
    /// The characters that were decoded and not returned yet.
    text: String,
    purpose: Purpose,
}

enum Purpose {
    Key,
    Field(Text),
    Other,
}

impl JsonStringFields {
    /// Creates a decoder of these members.
    pub(crate) fn new<T: Into<Text>>(fields: impl IntoIterator<Item = T>) -> Self {
        Self {
            fields: fields.into_iter().map(Into::into).collect(),
            begun: Vec::new(),
            depth: 0,
            expects_key: false,
            key: None,
            string: None,
        }
    }

    /// Reads the next characters of the object. Returns the pieces of members in them, in order.
    pub(crate) fn push(&mut self, json: &str) -> Vec<FieldPiece> {
        let mut pieces = Vec::new();
        for letter in json.chars() {
            if self.string.is_some() {
                pieces.extend(self.push_in_string(letter));
            } else {
                self.push_outside_strings(letter);
            }
        }
        if let Some(InString { text, purpose: Purpose::Field(field), .. }) = &mut self.string
            && !text.is_empty()
        {
            pieces.push(FieldPiece { field: field.clone(), text: std::mem::take(text), is_end: false });
        }
        pieces
    }

    fn push_outside_strings(&mut self, letter: char) {
        match letter {
            '"' => {
                let purpose = self.purpose();
                let (decoder, text) = (StringDecoder::default(), String::new());
                self.string = Some(InString { is_escaped: false, decoder, text, purpose });
            }
            '{' | '[' => {
                self.depth += 1;
                self.expects_key = letter == '{' && self.depth == 1;
                self.key = None;
            }
            '}' | ']' => self.depth = self.depth.saturating_sub(1),
            ',' => {
                self.expects_key = self.depth == 1;
                self.key = None;
            }
            ':' => self.expects_key = false,
            _ => {}
        }
    }

    fn purpose(&mut self) -> Purpose {
        if self.expects_key {
            return Purpose::Key;
        }
        let key = self.key.take().filter(|_| self.depth == 1);
        match key.filter(|key| self.fields.contains(key) && !self.begun.contains(key)) {
            Some(field) => {
                self.begun.push(field.clone());
                Purpose::Field(field)
            }
            None => Purpose::Other,
        }
    }

    fn push_in_string(&mut self, letter: char) -> Option<FieldPiece> {
        let string = self.string.as_mut()?;
        let ends = letter == '"' && !string.is_escaped;
        string.is_escaped = letter == '\\' && !string.is_escaped;
        if !ends {
            let is_read = match string.purpose {
                Purpose::Key => string.text.len() < MAX_NAME,
                Purpose::Field(_) => true,
                Purpose::Other => false,
            };
            if is_read {
                string.decoder.push(letter, &mut string.text);
            }
            return None;
        }
        string.decoder.end(&mut string.text);
        let InString { text, purpose, .. } = self.string.take()?;
        match purpose {
            Purpose::Field(field) => return Some(FieldPiece { field, text, is_end: true }),
            Purpose::Key => self.key = Some(text.into()),
            Purpose::Other => {}
        }
        None
    }
}

/// Values are content, so they are left out.
impl fmt::Debug for JsonStringFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonStringFields").field("fields", &self.fields).finish_non_exhaustive()
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

    fn read(pieces: &[&str]) -> Vec<FieldPiece> {
        let mut fields = JsonStringFields::new(["path", "content"]);
        let mut joined: Vec<FieldPiece> = Vec::new();
        for piece in pieces.iter().flat_map(|json| fields.push(json)) {
            match joined.last_mut() {
                Some(last) if last.field == piece.field && !last.is_end => {
                    last.text.push_str(&piece.text);
                    last.is_end = piece.is_end;
                }
                _ => joined.push(piece),
            }
        }
        joined
    }

    fn piece(field: &str, text: &str, is_end: bool) -> FieldPiece {
        FieldPiece { field: field.into(), text: text.to_owned(), is_end }
    }

    #[test]
    fn only_members_of_the_outermost_object_count() {
        for (json, expected) in [
            (r#"{"a": {"path": "x"}, "path" : "p\"", "path": "q"}"#, vec![piece("path", "p\"", true)]),
            (
                r#"{"content": "c", "list": ["path", "x"], "path": ""}"#,
                vec![piece("content", "c", true), piece("path", "", true)],
            ),
            (r#"{"con\u0074ent": "a\ud83d\ude00"#, vec![piece("content", "a😀", false)]),
            (r#"{"path": 7, "x": "y", "content": null}"#, vec![]),
            (r#"["path", "x"]"#, vec![]),
        ] {
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
            prop_assert_eq!(read(&[&json[..at], &json[at..]]), vec![piece("content", &content, true)]);
        }
    }
}
