//! The bound of elements: a multiple of the text that they are made of.

use super::node::Tag;

/// The bytes of elements for each byte of a text, and for a short one. Markdown that people and models write takes less: a
/// table of digits ten for each byte.
const FACTOR: usize = 16;
const SLACK: usize = 1 << 10;

/// The bytes of an element in JSON, beside its tag.
const ELEMENT: usize = r#"{"tag":,"children":[]},"#.len();

/// The bytes that elements may still take in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room(usize);

impl Room {
    /// Creates the room of this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Returns the room of the elements of a text.
    pub(super) fn of_text(bytes: usize) -> Self {
        let mut room = Self(SLACK);
        room.add_text(bytes);
        room
    }

    /// Adds the room of a further piece of a text.
    pub(super) fn add_text(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes.saturating_mul(FACTOR));
    }

    pub(super) fn at_most(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// Returns the bytes that were spent until `later`.
    pub(super) fn since(self, later: Self) -> usize {
        self.0.saturating_sub(later.0)
    }

    /// Spends bytes, if there are so many.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }

    pub(super) fn spend_for_element(&mut self, tag: &Tag) -> bool {
        serde_json::to_vec(tag).is_ok_and(|tag| self.spend(tag.len() + ELEMENT))
    }

    pub(super) fn spend_for_text(&mut self, text: &str) -> bool {
        serde_json::to_vec(text).is_ok_and(|text| self.spend(text.len() + 1))
    }
}
