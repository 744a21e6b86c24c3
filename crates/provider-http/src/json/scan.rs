//! Finds the end of a JSON value in bytes that arrive in pieces.

use memchr::memchr2;

/// The progress of the search for the end of one value. Every byte is searched once.
#[derive(Debug, Default)]
pub(super) struct Scan {
    place: Place,
    /// Number of open brackets.
    depth: usize,
    /// Number of bytes searched.
    searched: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the value.
    #[default]
    Start,
    /// In an object or an array, outside strings.
    Structure,
    /// In a string.
    String,
    /// In a string, after a backslash.
    Escape,
    /// In a number, a literal, or anything else without brackets and quotes.
    Word,
}

impl Scan {
    pub(super) fn is_at_start(&self) -> bool {
        self.place == Place::Start
    }

    /// Checks whether the value is a number or a literal, which the end of the body completes.
    pub(super) fn is_in_word(&self) -> bool {
        self.place == Place::Word
    }

    /// Continues the search in the value's bytes. Returns the length of the value, or `None` if its end has not
    /// arrived.
    pub(super) fn find_end(&mut self, value: &[u8]) -> Option<usize> {
        while let Some(rest) = value.get(self.searched..).filter(|rest| !rest.is_empty()) {
            if self.place == Place::String {
                let Some(at) = memchr2(b'"', b'\\', rest) else {
                    self.searched = value.len();
                    return None;
                };
                self.searched += at;
            }
            let byte = *value.get(self.searched)?;
            if self.place == Place::Word && is_word_end(byte) {
                return Some(self.searched);
            }
            self.searched += 1;
            if self.step(byte) {
                return Some(self.searched);
            }
        }
        None
    }

    /// Moves past one byte. Returns whether it ends the value.
    fn step(&mut self, byte: u8) -> bool {
        match (self.place, byte) {
            (Place::Start | Place::Structure, b'"') => self.place = Place::String,
            (Place::String, b'\\') => self.place = Place::Escape,
            (Place::Escape, _) => self.place = Place::String,
            (Place::String, b'"') => {
                self.place = Place::Structure;
                return self.depth == 0;
            }
            (Place::Start | Place::Structure, b'{' | b'[') => {
                self.place = Place::Structure;
                self.depth += 1;
            }
            (Place::Structure, b'}' | b']') => {
                self.depth -= 1;
                return self.depth == 0;
            }
            (Place::Start, _) => self.place = Place::Word,
            _ => {}
        }
        false
    }
}

/// Checks whether a byte cannot continue a number or a literal.
fn is_word_end(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'{' | b'[' | b'"' | b',' | b']')
}
