//! `Searched`, the text so far, and `Found`, the result of a search. Replacements and guards share the room.

pub(crate) mod pattern;
mod threads;
pub(crate) mod words;

use std::ops::Deref;

use advisor_core::PendingText;

/// A text to search: the pending part of a block, or a whole text. It dereferences to [`str`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Searched<'t> {
    text: &'t str,
    is_at_end: bool,
}

/// The result of a search.
#[derive(Debug)]
pub(crate) enum Found<M> {
    /// The first match. No further text can change it.
    Match(M),
    /// No match begins before this byte.
    Nothing(usize),
}

impl<'t> Searched<'t> {
    /// Creates a search in a text to which nothing is added.
    pub(crate) fn whole(text: &'t str) -> Self {
        Self { text, is_at_end: true }
    }

    /// Checks whether the text ends here.
    pub(crate) fn is_at_end(self) -> bool {
        self.is_at_end
    }
}

impl<'t> From<&'t PendingText<'_>> for Searched<'t> {
    fn from(text: &'t PendingText<'_>) -> Self {
        Self { text, is_at_end: text.is_at_end }
    }
}

impl Deref for Searched<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.text
    }
}
