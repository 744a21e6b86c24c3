//! `TextSearch` for words or a pattern, in the text so far (`Searched`), and its result (`Found`). Replacements and guards share
//! the room.

pub(crate) mod pattern;
mod threads;
pub(crate) mod words;

use std::ops::{Deref, Range};
use std::sync::Arc;

use advisor_core::{HoldBack, PendingText, Result};

use self::pattern::PatternSearch;
use self::words::{LetterCase, Words};

/// Words or a pattern, and the place of the search in one block.
#[derive(Debug, Clone)]
pub(crate) enum TextSearch {
    Words(Arc<Words>),
    Pattern(PatternSearch),
}

/// A match.
#[derive(Debug)]
pub(crate) struct Match {
    pub(crate) place: Range<usize>,
    /// The number of the word; 0 for a pattern.
    pub(crate) word: usize,
}

impl TextSearch {
    pub(crate) fn for_words(words: &[String], case: LetterCase) -> Self {
        Self::Words(Arc::new(Words::new(words.iter().map(String::as_str), case)))
    }

    /// # Errors
    /// Those of [`PatternSearch::new`].
    pub(crate) fn for_pattern(pattern: &str) -> Result<Self> {
        PatternSearch::new(pattern).map(Self::Pattern)
    }

    /// Returns at least as many bytes as are ever held back.
    pub(crate) fn hold_back(&self) -> HoldBack {
        HoldBack::Bytes(match self {
            Self::Words(words) => words.hold_back(),
            Self::Pattern(pattern) => pattern.hold_back(),
        })
    }

    /// Returns the first match, if it is decided. The text begins with what [`forget`](Self::forget) left of the last one.
    pub(crate) fn find(&mut self, text: Searched<'_>) -> Found<Match> {
        match self {
            Self::Words(words) => words.find(text),
            Self::Pattern(pattern) => match pattern.find(text) {
                Found::Match(place) => Found::Match(Match { place, word: 0 }),
                Found::Nothing(until) => Found::Nothing(until),
            },
        }
    }

    /// Returns the beginning of the first match, as soon as no further text can change it. Without a match, forgets the text
    /// before the returned byte.
    pub(crate) fn find_start(&mut self, text: Searched<'_>) -> Found<usize> {
        match self {
            Self::Pattern(pattern) => pattern.find_start(text),
            Self::Words(words) => match words.find(text) {
                Found::Match(found) => Found::Match(found.place.start),
                Found::Nothing(until) => Found::Nothing(until),
            },
        }
    }

    /// Forgets the front of the text, which is searched no more.
    pub(crate) fn forget(&mut self, front: &str) {
        if let Self::Pattern(pattern) = self {
            pattern.forget(front);
        }
    }
}

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
