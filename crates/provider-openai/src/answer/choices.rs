//! `Choices`: which entries of an answer's list of choices are read.

use std::cmp::Ordering;

use crate::wire::{Choice, Delta};

/// What is known of the choices. One answer is asked for, and one is read.
///
/// The numbers alone do not tell answers apart. Some servers count their tokens with them (Q54), so each is higher than the
/// one before. Others put the text and the calls of an answer in different choices (Q55). So a choice is an answer of its own,
/// and left out, only if an earlier entry opened it and it has a kind of words that came in another choice.
#[derive(Debug, Default)]
pub(super) struct Choices {
    highest: Option<u32>,
    text: Numbers,
    reasoning: Numbers,
    calls: Numbers,
    /// The choice that is read, once others are known to be answers of their own.
    answer: Option<u32>,
}

/// The numbers under which one kind of content came.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Numbers {
    #[default]
    None,
    /// Under this number, which may be that of a token.
    One(u32),
    /// Under this number, which is that of a choice: it came again after content, or its choice has ended.
    Choice(u32),
    /// Under higher and higher numbers.
    Ascending,
}

/// An entry may belong to another answer than what was read.
#[derive(Debug)]
pub(super) struct SeveralAnswers;

impl Choices {
    /// Notes an entry. Returns whether it is read. One that `repeats` the stream as a whole message has nothing new.
    #[inline]
    pub(super) fn read(&mut self, choice: &Choice<'_>, repeats: bool) -> Result<bool, SeveralAnswers> {
        let entry = Entry::new(choice, self.highest);
        self.highest = self.highest.max(Some(entry.number));
        self.note_choice(entry.number);
        let is_left_out = self.answer.is_some_and(|answer| answer != entry.number);
        let Some(piece) = choice.piece.as_ref().filter(|_| !repeats) else { return Ok(!is_left_out) };
        if !is_left_out && self.note_words(piece, entry) {
            let calls = if piece.calls() { self.calls.with_call(entry) } else { Some(self.calls) };
            self.calls = calls.ok_or(SeveralAnswers)?;
            if choice.finish_reason().is_some() {
                self.note_choice(entry.number);
            }
            return Ok(true);
        }
        if !(piece.speaks() || piece.reasons() || piece.calls()) {
            return Ok(false);
        }
        // What opens no choice, or calls, may be of this answer.
        self.answer = self.only_choice().filter(|_| !entry.is_new && !piece.calls());
        self.answer.map(|_| false).ok_or(SeveralAnswers)
    }

    /// Notes text and reasoning. Returns false if they are of another choice.
    fn note_words(&mut self, piece: &Delta<'_>, entry: Entry) -> bool {
        let is_choice = [self.text, self.reasoning, self.calls].contains(&Numbers::Choice(entry.number));
        let (speaks, reasons) = (piece.speaks(), piece.reasons());
        let text = if speaks { self.text.with_words(entry, is_choice) } else { Some(self.text) };
        let reasoning =
            if reasons { self.reasoning.with_words(entry, is_choice) } else { Some(self.reasoning) };
        let Some((text, reasoning)) = text.zip(reasoning) else { return false };
        (self.text, self.reasoning) = (text, reasoning);
        true
    }

    /// Notes that a number comes again, if it had content, or that its choice has ended.
    fn note_choice(&mut self, number: u32) {
        for numbers in [&mut self.text, &mut self.reasoning, &mut self.calls] {
            if *numbers == Numbers::One(number) {
                *numbers = Numbers::Choice(number);
            }
        }
    }

    /// Checks whether a further entry like the last one changes nothing.
    pub(super) fn are_known(&self) -> bool {
        let is_known = |numbers: &Numbers| matches!(numbers, Numbers::None | Numbers::Choice(_));
        [self.text, self.reasoning, self.calls].iter().all(is_known)
    }

    /// Returns the choice of all that was read, if it is one.
    fn only_choice(&self) -> Option<u32> {
        let mut only = None;
        for numbers in [self.text, self.reasoning, self.calls] {
            match numbers {
                Numbers::None => {}
                Numbers::One(number) | Numbers::Choice(number) if *only.get_or_insert(number) == number => {}
                _ => return None,
            }
        }
        only
    }
}

/// The number of an entry.
#[derive(Debug, Clone, Copy)]
struct Entry {
    number: u32,
    /// Beside the highest number before it.
    order: Ordering,
    /// Whether no entry had its number or a higher one, so that it may be that of a token.
    is_new: bool,
}

impl Entry {
    fn new(choice: &Choice<'_>, highest: Option<u32>) -> Self {
        let number = choice.number();
        let order = highest.map_or(Ordering::Greater, |highest| number.cmp(&highest));
        Self { number, order, is_new: choice.is_streamed && order.is_gt() }
    }
}

impl Numbers {
    /// Adds the number of an entry with text or reasoning; `None` if it is that of another choice.
    fn with_words(self, entry: Entry, is_choice: bool) -> Option<Self> {
        Some(match self {
            Self::None if is_choice => Self::Choice(entry.number),
            Self::None => Self::One(entry.number),
            Self::One(first) | Self::Choice(first) if first == entry.number => Self::Choice(first),
            Self::One(_) if entry.is_new => Self::Ascending,
            Self::Ascending if entry.order.is_ge() => Self::Ascending,
            _ => return None,
        })
    }

    /// Adds the number of an entry with calls; `None` if it is that of another choice, whose calls may have equal indexes.
    fn with_call(self, entry: Entry) -> Option<Self> {
        Some(match self {
            Self::None => Self::One(entry.number),
            Self::One(first) | Self::Choice(first) if first == entry.number => Self::Choice(first),
            Self::One(_) | Self::Choice(_) if entry.order.is_gt() => Self::Ascending,
            Self::Ascending if entry.order.is_ge() => self,
            _ => return None,
        })
    }
}
