//! `Matcher`: words, a pattern or a closure, as one search.

use std::fmt;
use std::sync::Arc;

use advisor_core::HoldBack;

use crate::search::pattern::PatternSearch;
use crate::search::words::{WordMatch, Words};
use crate::search::{Found, Searched};

/// The texts that a guard matches, and the place of the search in one block.
#[derive(Clone)]
pub(super) enum Matcher {
    Words(Arc<Words>),
    Pattern(PatternSearch),
    /// A check of whole texts.
    Texts(Arc<dyn Fn(&str) -> bool + Send + Sync>),
}

impl Matcher {
    pub(super) fn hold_back(&self) -> HoldBack {
        match self {
            Self::Words(words) => HoldBack::Bytes(words.hold_back()),
            Self::Pattern(search) => HoldBack::Bytes(search.hold_back()),
            // Not `Block`: blocks of kinds that are not checked pass at once.
            Self::Texts(_) => HoldBack::Bytes(usize::MAX),
        }
    }

    /// Returns the byte at which the first match begins.
    ///
    /// Without a match, the text before the returned byte is searched no more: the next one begins with what follows.
    pub(super) fn find(&mut self, text: Searched<'_>) -> Found<usize> {
        match self {
            Self::Words(words) => match words.find(text) {
                Found::Match(WordMatch { place, .. }) => Found::Match(place.start),
                Found::Nothing(until) => Found::Nothing(until),
            },
            Self::Pattern(search) => search.find_start(text),
            Self::Texts(is_match) => match text.is_at_end() {
                false => Found::Nothing(0),
                true if is_match(&text) => Found::Match(0),
                true => Found::Nothing(text.len()),
            },
        }
    }

    /// Checks whether a whole text has a match.
    pub(super) fn matches(&self, text: &str) -> bool {
        matches!(self.clone().find(Searched::whole(text)), Found::Match(_))
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.debug_tuple("Words").field(words).finish(),
            Self::Pattern(search) => f.debug_tuple("Pattern").field(search).finish(),
            Self::Texts(_) => f.debug_tuple("Texts").finish_non_exhaustive(),
        }
    }
}
