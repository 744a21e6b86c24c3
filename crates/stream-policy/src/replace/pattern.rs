//! `PatternReplacement`: replaces matches, by a text or its template.

use std::borrow::Cow;
use std::sync::Arc;

use advisor_core::PendingText;
use regex::Regex;

use crate::search::Found;
use crate::search::pattern::{PatternError, PatternSearch, syntax};

/// A pattern with its replacement.
#[derive(Debug, Clone)]
pub(super) struct PatternReplacement {
    search: PatternSearch,
    replacement: Arc<Template>,
}

impl PatternReplacement {
    pub(super) fn new(pattern: &str, replacement: String) -> Result<Self, PatternError> {
        let search = PatternSearch::new(pattern)?;
        Ok(Self { search, replacement: Template::new(replacement, pattern)?.into() })
    }

    /// Returns the bytes of the longest match. More is never held back.
    pub(super) fn hold_back(&self) -> usize {
        self.search.hold_back()
    }

    /// Replaces the decided matches in a text. Only a possible beginning of a match is left.
    pub(super) fn replace(&mut self, text: &mut PendingText<'_>) {
        loop {
            match self.search.find((&*text).into()) {
                Found::Match(place) => {
                    let before = self.search.before(text, place.start);
                    let matched = text.get(place.start..).unwrap_or_default();
                    let replacement = self.replacement.expand(before, self.search.decisive(matched));
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
