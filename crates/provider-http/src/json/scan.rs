//! Finds the end of a JSON value in bytes that arrive in pieces.

use memchr::memchr2;
use serde::de::IgnoredAny;

/// The progress of the search for the end of one value. Every byte is searched once.
#[derive(Debug, Default)]
pub(super) struct Scan {
    state: State,
    /// Number of open brackets.
    depth: usize,
    /// Number of bytes searched.
    searched: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
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
    /// In a line that is no JSON, such as an error in plain words. It is returned whole, for its reader to judge.
    Line,
}

impl Scan {
    pub(super) fn is_at_start(&self) -> bool {
        self.state == State::Start
    }

    /// Checks whether the value is a number, a literal or a line, which the end of the body completes.
    pub(super) fn is_in_word(&self) -> bool {
        matches!(self.state, State::Word | State::Line)
    }

    /// Continues the search in the value's bytes. Returns the length of the value, or `None` if its end has not
    /// arrived.
    pub(super) fn find_end(&mut self, value: &[u8]) -> Option<usize> {
        while let Some(rest) = value.get(self.searched..).filter(|rest| !rest.is_empty()) {
            if self.state == State::String {
                let Some(at) = memchr2(b'"', b'\\', rest) else {
                    self.searched = value.len();
                    return None;
                };
                self.searched += at;
            }
            let byte = *value.get(self.searched)?;
            if self.is_in_word() && self.ends_word(value, byte) {
                return Some(self.searched);
            }
            self.searched += 1;
            if self.step(byte) {
                return Some(self.searched);
            }
        }
        None
    }

    /// Checks whether this byte comes after the number, the literal or the line that is searched. Words that are no
    /// JSON begin a line.
    fn ends_word(&mut self, value: &[u8], byte: u8) -> bool {
        if self.state == State::Word {
            if !is_word_end(byte) {
                return false;
            }
            if value.get(..self.searched).is_some_and(is_json) {
                return true;
            }
            self.state = State::Line;
        }
        matches!(byte, b'\r' | b'\n')
    }

    /// Moves past one byte. Returns whether it ends the value.
    fn step(&mut self, byte: u8) -> bool {
        match (self.state, byte) {
            (State::Start | State::Structure, b'"') => self.state = State::String,
            (State::String, b'\\') => self.state = State::Escape,
            (State::Escape, _) => self.state = State::String,
            (State::String, b'"') => {
                self.state = State::Structure;
                return self.depth == 0;
            }
            (State::Start | State::Structure, b'{' | b'[') => {
                self.state = State::Structure;
                self.depth += 1;
            }
            (State::Structure, b'}' | b']') => {
                self.depth -= 1;
                return self.depth == 0;
            }
            (State::Start, _) => self.state = State::Word,
            _ => {}
        }
        false
    }
}

/// Checks whether a byte is white space between the tokens of JSON. ASCII has more: a form feed begins a word.
pub(super) fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Checks whether a byte cannot continue a number or a literal.
fn is_word_end(byte: u8) -> bool {
    is_white_space(byte) || matches!(byte, b'{' | b'[' | b'"' | b',' | b']')
}

fn is_json(word: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(word).is_ok()
}
