use std::borrow::Cow;
use std::collections::HashMap;

use advisor_core::PendingText;

/// The comparison of the letters of a word with those of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LetterCase {
    /// Only as the word is written.
    #[default]
    Exact,
    /// In any case. The replacement is as written.
    ///
    /// Characters are compared one by one, by their small letters. Those that share a capital are equal: both forms of a
    /// small sigma, and `i` with and without its dot. One letter never equals several, so `ß` is not `ss`. Accents count.
    Ignore,
    /// In any case, and the replacement follows the match: all capitals, or a first capital, or as written.
    Preserve,
}

/// Words and their replacements.
#[derive(Debug)]
pub(super) struct Words {
    case: LetterCase,
    words: Vec<(Vec<char>, String)>,
    /// Words by their first character, in their order.
    by_first: HashMap<char, Vec<usize>>,
}

/// The relation of the beginning of a text to the words.
enum Begins<'w> {
    /// The first bytes are a word, which this replaces.
    Word(usize, &'w str),
    /// The text may begin with a word, depending on what follows.
    Maybe,
    No,
}

impl Words {
    pub(super) fn new(words: impl Iterator<Item = (String, String)>, case: LetterCase) -> Self {
        let words: Vec<(Vec<char>, String)> =
            words.map(|(word, replacement)| (word.chars().collect(), replacement)).collect();
        let mut by_first: HashMap<char, Vec<usize>> = HashMap::new();
        for (at, (word, _)) in words.iter().enumerate() {
            if let Some(first) = word.first() {
                by_first.entry(case.key(*first)).or_default().push(at);
            }
        }
        Self { case, words, by_first }
    }

    /// Returns more bytes than are ever held back.
    pub(super) fn hold_back(&self) -> usize {
        let bytes = |word: &Vec<char>| word.len().saturating_mul(char::MAX.len_utf8());
        self.words.iter().map(|(word, _)| bytes(word)).max().unwrap_or_default()
    }

    /// Replaces the words in a text. A word that was listed earlier wins over one that begins at the same place. Only a
    /// possible beginning of a word is left.
    pub(super) fn replace(&self, text: &mut PendingText<'_>) {
        let mut plain = 0;
        while let Some(rest) = text.get(plain..)
            && let Some(first) = rest.chars().next()
        {
            match self.begins(first, rest, text.is_at_end()) {
                Begins::No => plain += first.len_utf8(),
                Begins::Maybe => break,
                Begins::Word(length, replacement) => {
                    let word = rest.get(..length).unwrap_or_default();
                    let replacement = self.case.apply(replacement, word);
                    text.pass(plain);
                    text.replace(length, &replacement);
                    plain = 0;
                }
            }
        }
        text.pass(plain);
    }

    fn begins(&self, first: char, rest: &str, is_at_end: bool) -> Begins<'_> {
        let candidates = self.by_first.get(&self.case.key(first)).into_iter().flatten();
        for (word, replacement) in candidates.filter_map(|at| self.words.get(*at)) {
            match self.match_length(word, rest) {
                Some(length) => return Begins::Word(length, replacement),
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
            Self::Ignore | Self::Preserve => {
                let capital = single(letter.to_uppercase()).unwrap_or(letter);
                single(capital.to_lowercase()).unwrap_or(capital)
            }
        }
    }

    /// Returns the replacement of a word that was found in this form.
    fn apply<'r>(self, replacement: &'r str, word: &str) -> Cow<'r, str> {
        let mut letters = word.chars().filter(|letter| letter.is_alphabetic());
        let begins_with_capital = letters.next().is_some_and(char::is_uppercase);
        if self != Self::Preserve || !begins_with_capital {
            return replacement.into();
        }
        let mut further = letters.peekable();
        if further.peek().is_some() && further.all(char::is_uppercase) {
            return replacement.to_uppercase().into();
        }
        let mut letters = replacement.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
    }
}

/// Returns the only character, if there is just one.
fn single(mut letters: impl Iterator<Item = char>) -> Option<char> {
    let first = letters.next();
    first.filter(|_| letters.next().is_none())
}
