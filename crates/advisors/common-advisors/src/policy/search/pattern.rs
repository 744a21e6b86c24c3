//! `PatternSearch`: regular expressions with a longest match.

use std::ops::Range;
use std::sync::Arc;

use advisor_core::{Error, Result};
use regex_syntax::hir::Hir;

use super::threads::{Automaton, Search};
use super::{Found, Searched};

/// A pattern, and the place of its search in one block.
#[derive(Debug, Clone)]
pub(crate) struct PatternSearch {
    automaton: Arc<Automaton>,
    /// The bytes of the longest match.
    longest: usize,
    search: Search,
}

impl PatternSearch {
    /// Creates a search for a regular expression.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) for a pattern that is invalid, matches an empty
    /// text, or can match more than 64 KiB.
    pub(crate) fn new(pattern: &str) -> Result<Self> {
        let hir = regex_syntax::parse(pattern).map_err(syntax)?;
        let longest = checked_length(&hir)?;
        let automaton = Automaton::new(&hir).map_err(syntax)?;
        Ok(Self { automaton: Arc::new(automaton), longest, search: Search::default() })
    }

    /// Returns the bytes of the longest match. More is never held back.
    pub(crate) fn hold_back(&self) -> usize {
        self.longest
    }

    /// Returns the place of the first match, if it is decided.
    ///
    /// The text begins with what [`forget`](Self::forget) left of the last one.
    pub(crate) fn find(&mut self, text: Searched<'_>) -> Found<Range<usize>> {
        self.search.find(&self.automaton, text)
    }

    /// Returns the beginning of the first match, as soon as no further text can change it. The end of the match may
    /// still change. Without a match, forgets the text before the returned byte.
    pub(crate) fn find_start(&mut self, text: Searched<'_>) -> Found<usize> {
        let until = match self.find(text) {
            Found::Match(place) => return Found::Match(place.start),
            Found::Nothing(until) => until,
        };
        if let Some(start) = self.search.certain_start() {
            return Found::Match(start);
        }
        self.forget(text.get(..until).unwrap_or_default());
        Found::Nothing(until)
    }

    /// Forgets the front of the text, which is searched no more.
    pub(crate) fn forget(&mut self, front: &str) {
        self.search.forget(front);
    }
}

/// The maximum number of bytes of a match.
const LONGEST: usize = 64 << 10;

/// Returns the error of a library about a pattern.
fn syntax(error: impl std::error::Error) -> Error {
    Error::configuration(format!("not a regular expression: {error}"))
}

/// Returns the bytes of the longest match of a pattern.
fn checked_length(hir: &Hir) -> Result<usize> {
    let Some(length) = hir.properties().maximum_len() else {
        // Any amount of text would have to be held back.
        let reason = "matches of the pattern have no maximum length; write `{1,64}` in place of `+`";
        return Err(Error::configuration(reason));
    };
    if hir.properties().minimum_len() == Some(0) {
        return Err(Error::configuration(
            "the pattern matches an empty text; let it match at least one character",
        ));
    }
    if length > LONGEST {
        return Err(Error::configuration(format!(
            "matches of the pattern can have {length} bytes; at most {LONGEST} are possible"
        )));
    }
    Ok(length)
}
