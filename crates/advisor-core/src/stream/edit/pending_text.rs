//! `PendingText`: undecided text of one block; `pass`, `replace`, `replace_all` and `end_answer`.

use std::ops::Deref;

use message_aggregator::{Block, BlockKind, FinishReason};

/// The text of one block that an editor has not decided on yet: the held-back text, then the newest piece.
///
/// It dereferences to [`str`]. The editor takes text from the front; the rest is held back until the next piece.
#[derive(Debug)]
pub struct PendingText<'a> {
    rest: &'a str,
    out: &'a mut String,
    kind: BlockKind,
    state: BlockState,
    end: Option<EarlyEnd>,
}

/// The end of an answer inside a text.
#[derive(Debug)]
pub(super) struct EarlyEnd {
    pub(super) reason: FinishReason,
    /// The block that follows the text.
    pub(super) last: Option<Block>,
}

/// Whether further text of a block may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockState {
    Open,
    Ended,
}

impl<'a> PendingText<'a> {
    pub(super) fn new(text: &'a str, out: &'a mut String, kind: BlockKind, state: BlockState) -> Self {
        Self { rest: text, out, kind, state, end: None }
    }

    /// Checks whether the block ends here. The remaining text is then emitted unchanged.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.state == BlockState::Ended
    }

    /// Returns the kind of the block: text, reasoning or refusal.
    #[must_use]
    pub fn kind(&self) -> BlockKind {
        self.kind
    }

    /// Emits the first `bytes` unchanged, rounded down to a character boundary.
    pub fn pass(&mut self, bytes: usize) {
        let passed = self.take(bytes);
        self.out.push_str(passed);
    }

    /// Emits all text unchanged.
    pub fn pass_all(&mut self) {
        self.pass(self.rest.len());
    }

    /// Emits `text` in place of the first `bytes`, rounded down to a character boundary.
    pub fn replace(&mut self, bytes: usize, text: &str) {
        self.take(bytes);
        self.out.push_str(text);
    }

    /// Replaces each occurrence of these words, also when a word arrives in pieces. If two words begin at the same
    /// position, the one listed first wins.
    ///
    /// It holds back only a possible beginning of a word: always less than the longest of them. Empty words are
    /// ignored.
    pub fn replace_all<A: AsRef<str>, B: AsRef<str>>(&mut self, words: &[(A, B)]) {
        while let Some(first) = self.rest.chars().next() {
            match words.iter().find_map(|(word, with)| self.begins(word.as_ref(), with.as_ref())) {
                Some(Begins::Whole(length, with)) => self.replace(length, with),
                Some(Begins::Maybe) => return,
                None => self.pass(first.len_utf8()),
            }
        }
    }

    /// Ends the answer here. The text that was emitted closes its block, `last` follows it, then `Completed` with this
    /// reason.
    ///
    /// The rest of the text is left out, and so is the held-back text of other blocks. The source is dropped.
    pub fn end_answer(&mut self, reason: FinishReason, last: Option<Block>) {
        self.rest = "";
        self.end.get_or_insert(EarlyEnd { reason, last });
    }

    fn begins<'w>(&self, word: &str, with: &'w str) -> Option<Begins<'w>> {
        if word.is_empty() {
            return None;
        }
        if self.rest.starts_with(word) {
            return Some(Begins::Whole(word.len(), with));
        }
        (!self.is_at_end() && word.starts_with(self.rest)).then_some(Begins::Maybe)
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(self.rest.floor_char_boundary(bytes));
        self.rest = rest;
        taken
    }

    /// Emits all but the last `bytes`, rounded up to a character boundary, so that at most `bytes` are held back.
    pub(super) fn hold_at_most(&mut self, bytes: usize) {
        let beyond = self.rest.len().saturating_sub(bytes);
        self.pass(self.rest.ceil_char_boundary(beyond));
    }

    /// Returns the held-back text, and the end of the answer, if it ends here.
    pub(super) fn into_rest(self) -> (&'a str, Option<EarlyEnd>) {
        (self.rest, self.end)
    }
}

/// The relation of the beginning of a text to a word.
enum Begins<'w> {
    Whole(usize, &'w str),
    /// The text may begin with the word, depending on what follows.
    Maybe,
}

impl Deref for PendingText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(pieces: &[&str], words: &[(&str, &str)]) -> (String, usize) {
        let (mut held, mut out, mut most) = (String::new(), String::new(), 0);
        for (place, piece) in pieces.iter().enumerate() {
            held.push_str(piece);
            let state = if place + 1 == pieces.len() { BlockState::Ended } else { BlockState::Open };
            let mut pending = PendingText::new(&held, &mut out, BlockKind::Text, state);
            pending.replace_all(words);
            held = pending.into_rest().0.to_owned();
            most = most.max(held.len());
        }
        assert_eq!(held, "", "nothing is held back at the end");
        (out, most)
    }

    #[test]
    fn words_are_replaced_however_they_are_cut() {
        let words = [("abc", "1"), ("ab", "2"), ("", "never"), ("é", "e"), ("bcd", "3")];
        for (text, expected) in [
            ("xabcab", "x12"),
            ("aabcbcd", "a13"),
            ("abd éab", "2d e2"),
            ("", ""),
            ("bc", "bc"),
            ("bcab", "bc2"),
        ] {
            let pieces: Vec<String> = text.chars().map(String::from).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).chain([""]).collect();
            let (whole, most) = (replaced(&[text], &words).0, replaced(&pieces, &words));
            assert_eq!((whole.as_str(), most.0.as_str()), (expected, expected));
            assert!(most.1 < 3, "less than the longest word is held back");
        }
    }

    #[test]
    fn taken_length_rounds_down_to_char_boundary() {
        let mut out = String::new();
        let mut pending = PendingText::new("aé→z", &mut out, BlockKind::Text, BlockState::Open);
        pending.pass(2);
        assert_eq!(&*pending, "é→z");
        pending.replace(4, "e");
        assert_eq!(&*pending, "→z");
        pending.hold_at_most(2);
        assert_eq!(&*pending, "z");
        pending.pass(usize::MAX);
        assert_eq!(&*pending, "");
        assert_eq!(out, "ae→z");
    }
}
