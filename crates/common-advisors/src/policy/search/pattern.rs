//! `PatternSearch` and `PatternError`: regular expressions with a longest match.

use std::ops::Range;
use std::sync::Arc;

use advisor_core::Error;
use regex_syntax::hir::Hir;

use super::threads::{Automaton, Search};
use super::{Found, Searched};

/// A pattern, and the place of its search in one block.
#[derive(Debug, Clone)]
pub(crate) struct PatternSearch {
    pattern: Arc<BoundedPattern>,
    search: Search,
}

impl PatternSearch {
    pub(crate) fn new(pattern: &str) -> Result<Self, PatternError> {
        Ok(Self { pattern: BoundedPattern::new(pattern)?.into(), search: Search::default() })
    }

    /// Returns the bytes of the longest match. More is never held back.
    pub(crate) fn hold_back(&self) -> usize {
        self.pattern.longest
    }

    /// Returns the place of the first match, if it is decided.
    ///
    /// The text begins with what [`forget`](Self::forget) left of the last one.
    pub(crate) fn find(&mut self, text: Searched<'_>) -> Found<Range<usize>> {
        self.search.find(&self.pattern.automaton, text)
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

    /// Returns the last character before this byte of the text.
    pub(crate) fn before(&self, text: &str, at: usize) -> Option<char> {
        self.search.before(text, at)
    }

    /// Returns the front of a text that decides about a match at its beginning: as much as the longest match, and the
    /// character after it.
    pub(crate) fn decisive<'t>(&self, text: &'t str) -> &'t str {
        text.get(..text.floor_char_boundary(self.pattern.longest + char::MAX.len_utf8())).unwrap_or_default()
    }
}

/// Reason why a regular expression cannot be applied to a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// It is not a regular expression, or it is too large.
    #[error("not a regular expression: {0}")]
    Syntax(String),
    /// Its matches have no maximum length, so any amount of text would have to be held back.
    #[error("matches of the pattern have no maximum length; write `{{1,64}}` in place of `+`")]
    Unbounded,
    /// Its longest match has more bytes than the limit.
    #[error("matches of the pattern can have {length} bytes; at most {limit} are possible")]
    TooLong {
        /// The bytes of the longest match.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// It matches an empty text.
    #[error("the pattern matches an empty text; let it match at least one character")]
    MatchesEmpty,
}

/// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration).
impl From<PatternError> for Error {
    fn from(error: PatternError) -> Self {
        Self::configuration(error.to_string())
    }
}

/// A regular expression whose matches have a known maximum length.
#[derive(Debug)]
struct BoundedPattern {
    automaton: Automaton,
    /// The bytes of the longest match.
    longest: usize,
}

impl BoundedPattern {
    /// The maximum number of bytes of a match.
    const LONGEST: usize = 64 << 10;

    fn new(pattern: &str) -> Result<Self, PatternError> {
        let hir = regex_syntax::parse(pattern).map_err(syntax)?;
        let longest = checked_length(&hir)?;
        Ok(Self { automaton: Automaton::new(&hir).map_err(syntax)?, longest })
    }
}

/// Returns the error of a library about a pattern.
pub(crate) fn syntax(error: impl std::error::Error) -> PatternError {
    PatternError::Syntax(error.to_string())
}

fn checked_length(hir: &Hir) -> Result<usize, PatternError> {
    let length = hir.properties().maximum_len().ok_or(PatternError::Unbounded)?;
    if hir.properties().minimum_len() == Some(0) {
        return Err(PatternError::MatchesEmpty);
    }
    if length > BoundedPattern::LONGEST {
        return Err(PatternError::TooLong { length, limit: BoundedPattern::LONGEST });
    }
    Ok(length)
}
