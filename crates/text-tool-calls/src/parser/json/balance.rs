//! `Balance`: finds the end of JSON that is no call.

use super::brackets::Brackets;
use crate::parser::steps;

/// Finds the end of JSON that is no call.
///
/// JSON ends where its brackets close. Since it may be invalid, it also ends at an empty line and at a fence.
#[derive(Debug, Clone, Copy)]
pub(in crate::parser) struct Balance {
    brackets: Brackets,
    /// Whether the line so far is white space.
    line_is_empty: bool,
}

impl Balance {
    /// Creates a finder that begins within these brackets.
    pub(super) fn new(brackets: Brackets) -> Self {
        Self { brackets, line_is_empty: false }
    }

    /// Returns the length of the text up to the end, or `None` if the end is not in the text.
    pub(in crate::parser) fn pass(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            steps::count(1);
            match byte {
                b'\n' if self.line_is_empty => return Some(at + 1),
                b'`' if self.line_is_empty => return Some(at),
                b'\n' => self.line_is_empty = true,
                b' ' | b'\t' | b'\r' => {}
                _ => self.line_is_empty = false,
            }
            if self.brackets.closes_with(byte) {
                return Some(at + 1);
            }
        }
        None
    }
}
