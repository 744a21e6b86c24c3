//! `WordReplacement`: replaces words, in the letter case of the text.

use std::borrow::Cow;

use advisor_core::PendingText;

use crate::search::Found;
use crate::search::words::{LetterCase, Words};

/// Words with their replacements.
#[derive(Debug)]
pub(super) struct WordReplacement {
    search: Words,
    case: LetterCase,
    /// The replacement of each word.
    replacements: Vec<String>,
}

impl WordReplacement {
    pub(super) fn new(words: impl Iterator<Item = (String, String)>, case: LetterCase) -> Self {
        let (words, replacements): (Vec<_>, Vec<_>) = words.unzip();
        Self { search: Words::new(words.iter().map(String::as_str), case), case, replacements }
    }

    /// Returns more bytes than are ever held back.
    pub(super) fn hold_back(&self) -> usize {
        self.search.hold_back()
    }

    /// Replaces the words in a text. Only a possible beginning of a word is left.
    pub(super) fn replace(&self, text: &mut PendingText<'_>) {
        loop {
            match self.search.find((&*text).into()) {
                Found::Match(found) => {
                    let word = text.get(found.place.clone()).unwrap_or_default();
                    let replacement =
                        self.replacements.get(found.word).map(String::as_str).unwrap_or_default();
                    let replacement = in_case_of(word, replacement, self.case);
                    text.pass(found.place.start);
                    text.replace(found.place.len(), &replacement);
                }
                Found::Nothing(until) => return text.pass(until),
            }
        }
    }
}

/// Returns the replacement of a word that was found in this form.
fn in_case_of<'r>(word: &str, replacement: &'r str, case: LetterCase) -> Cow<'r, str> {
    let mut letters = word.chars().filter(|letter| letter.is_alphabetic());
    let begins_with_capital = letters.next().is_some_and(char::is_uppercase);
    if case != LetterCase::Preserve || !begins_with_capital {
        return replacement.into();
    }
    let mut further = letters.peekable();
    if further.peek().is_some() && further.all(char::is_uppercase) {
        return replacement.to_uppercase().into();
    }
    let mut letters = replacement.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
