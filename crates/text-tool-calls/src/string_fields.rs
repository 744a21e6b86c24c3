//! `JsonStringFields`: decodes chosen members of an object while it arrives.

use advisor_core::Text;

use crate::json_string::{JsonStringDecoder, decoded};

/// The bytes of a member's name beyond which it is no known one.
const MAX_NAME: usize = 256;

/// Decodes chosen string members of a JSON object while its text arrives, such as a file's content in the
/// arguments of a call.
///
/// Only members of the outermost object count, and of two of one name the first. Text that is no JSON gives no
/// pieces, or some of the pieces before the fault.
///
/// # Example
/// ```
/// use text_tool_calls::JsonStringFields;
///
/// let mut fields = JsonStringFields::new(["path", "content"]);
/// let mut content = String::new();
/// for json in [r#"{"path": "a.txt", "con"#, r#"tent": "one\n"#, r#"two \u00e9"}"#] {
///     for piece in fields.push(json) {
///         if piece.field == "content" {
///             content.push_str(&piece.text);
///         }
///     }
/// }
/// assert_eq!(content, "one\ntwo é");
/// ```
#[derive(Debug)]
pub struct JsonStringFields {
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
pub struct FieldPiece {
    /// The name of the member.
    pub field: Text,
    /// The next characters of its value.
    pub text: String,
    /// Whether the value ends here.
    pub is_end: bool,
}

#[derive(Debug)]
struct InString {
    is_escaped: bool,
    purpose: Purpose,
}

#[derive(Debug)]
enum Purpose {
    Key(String),
    Field(JsonStringDecoder, FieldPiece),
    Other,
}

impl JsonStringFields {
    /// Creates a decoder of these members.
    pub fn new<T: Into<Text>>(fields: impl IntoIterator<Item = T>) -> Self {
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
    pub fn push(&mut self, json: &str) -> Vec<FieldPiece> {
        let mut pieces = Vec::new();
        for letter in json.chars() {
            if self.string.is_some() {
                pieces.extend(self.push_in_string(letter));
            } else {
                self.push_outside_strings(letter);
            }
        }
        if let Some(InString { purpose: Purpose::Field(_, piece), .. }) = &mut self.string
            && !piece.text.is_empty()
        {
            let text = std::mem::take(&mut piece.text);
            pieces.push(FieldPiece { field: piece.field.clone(), text, is_end: false });
        }
        pieces
    }

    fn push_outside_strings(&mut self, letter: char) {
        match letter {
            '"' => self.string = Some(InString { is_escaped: false, purpose: self.purpose() }),
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
            return Purpose::Key(String::new());
        }
        let key = self.key.take().filter(|_| self.depth == 1);
        let Some(field) = key.filter(|key| self.fields.contains(key) && !self.begun.contains(key)) else {
            return Purpose::Other;
        };
        self.begun.push(field.clone());
        let piece = FieldPiece { field, text: String::new(), is_end: false };
        Purpose::Field(JsonStringDecoder::default(), piece)
    }

    fn push_in_string(&mut self, letter: char) -> Option<FieldPiece> {
        let string = self.string.as_mut()?;
        let ends = letter == '"' && !string.is_escaped;
        string.is_escaped = letter == '\\' && !string.is_escaped;
        match &mut string.purpose {
            Purpose::Key(name) if !ends && name.len() < MAX_NAME => name.push(letter),
            Purpose::Field(decoder, piece) if !ends => decoder.push(letter, &mut piece.text),
            _ => {}
        }
        if !ends {
            return None;
        }
        match self.string.take()?.purpose {
            Purpose::Key(name) => {
                self.key = Some(decoded(&name).into());
                None
            }
            Purpose::Field(mut decoder, mut piece) => {
                decoder.end(&mut piece.text);
                Some(FieldPiece { is_end: true, ..piece })
            }
            Purpose::Other => None,
        }
    }
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
