//! `Words` and `LetterCase`: finds words with the smallest hold-back.

use std::collections::HashMap;

use super::{Found, Match, Searched};

/// The comparison of the letters of a word with those of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LetterCase {
    /// Only as the word is written.
    #[default]
    Exact,
    /// In any case. A replacement is as written.
    ///
    /// Characters are compared one by one, by their small letters. Those that share a capital are equal: both forms of a
    /// small sigma, and `i` with and without its dot. One letter never equals several, so `ß` is not `ss`. Accents count.
    Ignore,
}

/// Words to search for.
#[derive(Debug)]
pub(crate) struct Words {
    case: LetterCase,
    words: Vec<Vec<char>>,
    /// Words by their first character, in their order.
    by_first: HashMap<char, Vec<usize>>,
}

/// The relation of the beginning of a text to the words.
enum Begins {
    /// The first bytes are a word.
    Word {
        length: usize,
        word: usize,
    },
    /// The text may begin with a word, depending on what follows.
    Maybe,
    No,
}

impl Words {
    /// Creates a search. A word that is listed earlier wins over one that begins at the same place.
    pub(crate) fn new<'w>(words: impl Iterator<Item = &'w str>, case: LetterCase) -> Self {
        let words: Vec<Vec<char>> = words.map(|word| word.chars().collect()).collect();
        let mut by_first: HashMap<char, Vec<usize>> = HashMap::new();
        for (at, word) in words.iter().enumerate() {
            if let Some(first) = word.first() {
                by_first.entry(case.key(*first)).or_default().push(at);
            }
        }
        Self { case, words, by_first }
    }

    /// Returns more bytes than are ever held back.
    pub(crate) fn hold_back(&self) -> usize {
        let bytes = |word: &Vec<char>| word.len().saturating_mul(char::MAX.len_utf8());
        self.words.iter().map(bytes).max().unwrap_or_default()
    }

    /// Returns the first word in a text, if it is decided.
    pub(crate) fn find(&self, text: Searched<'_>) -> Found<Match> {
        let mut at = 0;
        while let Some(rest) = text.get(at..)
            && let Some(first) = rest.chars().next()
        {
            match self.begins(first, rest, text.is_at_end()) {
                Begins::No => at += first.len_utf8(),
                Begins::Maybe => break,
                Begins::Word { length, word } => {
                    return Found::Match(Match { place: at..at + length, word });
                }
            }
        }
        Found::Nothing(at)
    }

    fn begins(&self, first: char, rest: &str, is_at_end: bool) -> Begins {
        let candidates = self.by_first.get(&self.case.key(first)).into_iter().flatten();
        for (at, word) in candidates.filter_map(|at| Some((*at, self.words.get(*at)?))) {
            match self.match_length(word, rest) {
                Some(length) => return Begins::Word { length, word: at },
                None if !is_at_end && self.is_beginning(word, rest) => return Begins::Maybe,
                None => {}
            }
        }
        Begins::No
    }

    /// Returns the bytes of `rest` that match the whole word.
    fn match_length(&self, word: &[char], rest: &str) -> Option<usize> {
        let mut letters = rest.char_indices();
        for letter in word {
            let (_, found) = letters.next()?;
            if self.case.key(found) != self.case.key(*letter) {
                return None;
            }
        }
        Some(letters.offset())
    }

    /// Checks whether all of `rest` matches the beginning of the word.
    fn is_beginning(&self, word: &[char], rest: &str) -> bool {
        let mut letters = word.iter();
        rest.chars()
            .all(|found| letters.next().is_some_and(|letter| self.case.key(found) == self.case.key(*letter)))
    }
}

impl LetterCase {
    /// Returns the form in which characters are compared.
    fn key(self, letter: char) -> char {
        match self {
            Self::Exact => letter,
            // Some small letters share a capital, such as the two forms of sigma.
            Self::Ignore => {
                let capital = single(letter.to_uppercase()).unwrap_or(letter);
                single(capital.to_lowercase()).unwrap_or(capital)
            }
        }
    }
}

/// Returns the only character, if there is just one.
fn single(mut letters: impl Iterator<Item = char>) -> Option<char> {
    let first = letters.next();
    first.filter(|_| letters.next().is_none())
}
