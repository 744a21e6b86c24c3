use std::borrow::Cow;
use std::sync::Arc;

use advisor_core::PendingText;
use regex::Regex;
use regex_syntax::hir::Hir;

use super::automaton::Automaton;
use super::search::{Found, Search};

/// A pattern, its replacement, and the place in one block.
#[derive(Debug, Clone)]
pub(super) struct PatternReplacement {
    pattern: Arc<BoundedPattern>,
    replacement: Arc<Template>,
    search: Search,
}

impl PatternReplacement {
    pub(super) fn new(pattern: &str, replacement: String) -> Result<Self, PatternError> {
        let bounded = BoundedPattern::new(pattern)?;
        let replacement = Template::new(replacement, pattern)?;
        Ok(Self { pattern: bounded.into(), replacement: replacement.into(), search: Search::default() })
    }

    /// Returns the bytes of the longest match. More is never held back.
    pub(super) fn hold_back(&self) -> usize {
        self.pattern.longest
    }

    /// Replaces the decided matches in a text. Only a possible beginning of a match is left.
    pub(super) fn replace(&mut self, text: &mut PendingText<'_>) {
        loop {
            match self.search.find(&self.pattern.automaton, text) {
                Found::Match(place) => {
                    let before = self.search.before(text, place.start);
                    let matched = text.get(place.start..).unwrap_or_default();
                    let replacement = self.replacement.expand(before, self.pattern.decisive(matched));
                    self.search.forget(text.get(..place.end).unwrap_or_default());
                    text.pass(place.start);
                    text.replace(place.len(), &replacement);
                }
                Found::Nothing(until) => {
                    self.search.forget(text.get(..until).unwrap_or_default());
                    return text.pass(until);
                }
            }
        }
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

    /// Returns the front of a text that decides about a match at its beginning: as much as the longest match, and the
    /// character after it.
    fn decisive<'t>(&self, text: &'t str) -> &'t str {
        text.get(..text.floor_char_boundary(self.longest + char::MAX.len_utf8())).unwrap_or_default()
    }
}

/// The replacement of a match.
#[derive(Debug)]
enum Template {
    /// The same text for each match.
    Text(String),
    /// A text that refers to groups of the match, such as `$1`.
    Groups(String, Regex),
}

impl Template {
    fn new(text: String, pattern: &str) -> Result<Self, PatternError> {
        Ok(if text.contains('$') {
            Self::Groups(text, Regex::new(pattern).map_err(syntax)?)
        } else {
            Self::Text(text)
        })
    }

    /// Returns the replacement of the match at the beginning of `text`, which follows the character `before`.
    fn expand(&self, before: Option<char>, text: &str) -> Cow<'_, str> {
        let (template, regex) = match self {
            Self::Text(text) => return text.into(),
            Self::Groups(template, regex) => (template, regex),
        };
        let searched: String = before.into_iter().chain(text.chars()).collect();
        let mut expanded = String::new();
        if let Some(found) = regex.captures_at(&searched, before.map_or(0, char::len_utf8)) {
            found.expand(template, &mut expanded);
        }
        expanded.into()
    }
}

fn syntax(error: impl std::error::Error) -> PatternError {
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
