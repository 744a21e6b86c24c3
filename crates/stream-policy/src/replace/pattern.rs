use std::sync::Arc;

use advisor_core::PendingText;
use regex::{Captures, Regex};
use regex_syntax::hir::Hir;

/// A pattern, its replacement, and the place in one block.
#[derive(Debug, Clone)]
pub(super) struct PatternReplacement {
    pattern: Arc<BoundedPattern>,
    replacement: Arc<str>,
    /// The last character before the pending text, if any: `\b` and `^` look at it.
    before: String,
}

impl PatternReplacement {
    pub(super) fn new(pattern: &str, replacement: String) -> Result<Self, PatternError> {
        let pattern = Arc::new(BoundedPattern::new(pattern)?);
        Ok(Self { pattern, replacement: replacement.into(), before: String::new() })
    }

    /// Returns more bytes than are ever held back.
    pub(super) fn hold_back(&self) -> usize {
        self.pattern.decides + char::MAX.len_utf8()
    }

    /// Replaces the decided matches in a text.
    pub(super) fn replace(&mut self, text: &mut PendingText<'_>) {
        let searched = format!("{}{}", self.before, &**text);
        let mut from = self.before.len();
        loop {
            match self.pattern.find(&searched, from, text.is_at_end()) {
                Found::Match(found) => {
                    let place = found.get_match().range();
                    let mut replacement = String::new();
                    found.expand(&self.replacement, &mut replacement);
                    text.pass(place.start.saturating_sub(from));
                    text.replace(place.len(), &replacement);
                    from = place.end;
                }
                Found::Nothing(until) => {
                    text.pass(until.saturating_sub(from));
                    from = from.max(until);
                    break;
                }
            }
        }
        let passed = searched.get(..from).unwrap_or_default();
        self.before = passed.chars().next_back().map(String::from).unwrap_or_default();
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
#[derive(Debug, Clone)]
struct BoundedPattern {
    regex: Regex,
    /// The bytes that decide about a match from its beginning: the longest match, and the character after it.
    decides: usize,
}

impl BoundedPattern {
    /// The maximum number of bytes of a match.
    const LONGEST: usize = 64 << 10;

    fn new(pattern: &str) -> Result<Self, PatternError> {
        let syntax = |error: &dyn std::error::Error| PatternError::Syntax(error.to_string());
        let hir = regex_syntax::parse(pattern).map_err(|error| syntax(&error))?;
        let length = checked_length(&hir)?;
        let regex = Regex::new(pattern).map_err(|error| syntax(&error))?;
        Ok(Self { regex, decides: length + char::MAX.len_utf8() })
    }

    /// Returns the first match in `text` from this byte on that no further text can change.
    ///
    /// Without a match, returns the byte up to which there is none.
    ///
    /// A match depends on the character before it, and on at most `decides` bytes from its beginning. So one that
    /// begins closer to the end of an unfinished text is undecided.
    fn find<'t>(&self, text: &'t str, from: usize, is_at_end: bool) -> Found<'t> {
        let found = self.regex.captures_at(text, from);
        let end = match (text.len().checked_sub(self.decides), is_at_end) {
            (_, true) => return found.map_or(Found::Nothing(text.len()), Found::Match),
            (None, false) => from,
            (Some(last), false) => last + 1,
        };
        match found {
            Some(found) if found.get_match().start() < end => Found::Match(found),
            _ => Found::Nothing(text.floor_char_boundary(end.max(from))),
        }
    }
}

/// The result of a search.
enum Found<'t> {
    Match(Captures<'t>),
    /// No match begins before this byte.
    Nothing(usize),
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
