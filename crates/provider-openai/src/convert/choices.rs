//! `Choices`: which entries of an answer's list of choices are read.

use std::cmp::Ordering;

use crate::wire::Choice;

/// What is known of the choices. One answer is asked for, and one is read.
///
/// The numbers alone do not tell answers apart. Some servers count their tokens with them (Q54), so each is higher than the
/// one before. Others put the text and the calls of an answer in different choices (Q55). So a choice is an answer of its own,
/// and left out, only if an earlier entry opened it and it has a kind of content that came in another choice.
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
    /// Under this number, once: it may be that of a token.
    Once(u32),
    /// Under this number, which is that of a choice.
    Choice(u32),
    /// Under higher and higher numbers.
    Ascending,
}

/// An entry may belong to another answer than what was read.
#[derive(Debug)]
pub(super) struct SeveralAnswers;

impl Choices {
    /// Notes an entry. Returns whether it is read.
    #[inline]
    pub(super) fn read(&mut self, choice: &Choice<'_>) -> Result<bool, SeveralAnswers> {
        let entry = Entry::new(choice, self.highest);
        self.highest = self.highest.max(Some(entry.number));
        let is_left_out = self.answer.is_some_and(|answer| answer != entry.number);
        if !is_left_out && self.note_words(choice, entry) {
            let calls = if choice.calls() { self.calls.with_call(entry) } else { Some(self.calls) };
            self.calls = calls.ok_or(SeveralAnswers)?;
            return Ok(true);
        }
        // What opens no choice, or calls, may be of this answer.
        let may_leave_out = (is_left_out || !entry.is_new()) && !choice.calls();
        self.answer = self.only_choice().filter(|_| may_leave_out);
        self.answer.map(|_| false).ok_or(SeveralAnswers)
    }

    /// Notes text and reasoning. Returns false if they are of another choice.
    fn note_words(&mut self, choice: &Choice<'_>, entry: Entry) -> bool {
        let text = if choice.speaks() { self.text.with_words(entry) } else { Some(self.text) };
        let reasoning =
            if choice.reasons() { self.reasoning.with_words(entry) } else { Some(self.reasoning) };
        let both = text.zip(reasoning);
        (self.text, self.reasoning) = both.unwrap_or((self.text, self.reasoning));
        both.is_some()
    }

    /// Checks whether a further entry like the last one changes nothing.
    pub(super) fn are_decided(&self) -> bool {
        ![self.text, self.reasoning].iter().any(|numbers| matches!(numbers, Numbers::Once(_)))
    }

    /// Checks whether an entry like an earlier one means the same as that one.
    pub(super) fn are_repeatable(&self) -> bool {
        ![self.text, self.reasoning, self.calls].contains(&Numbers::Ascending)
    }

    /// Returns the choice of all that was read, if it is one.
    fn only_choice(&self) -> Option<u32> {
        let mut only = None;
        for numbers in [self.text, self.reasoning, self.calls] {
            match numbers {
                Numbers::None => {}
                Numbers::Once(number) | Numbers::Choice(number) if *only.get_or_insert(number) == number => {}
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
    is_streamed: bool,
    ends: bool,
}

impl Entry {
    fn new(choice: &Choice<'_>, highest: Option<u32>) -> Self {
        let number = choice.number();
        let order = highest.map_or(Ordering::Greater, |highest| number.cmp(&highest));
        Self { number, order, is_streamed: choice.is_streamed(), ends: choice.finish_reason().is_some() }
    }

    /// Checks whether its number is none of those before it, and may be that of a token.
    fn is_new(self) -> bool {
        self.is_streamed && self.order.is_gt()
    }
}

impl Numbers {
    /// Adds the number of an entry with text or reasoning; `None` if it is that of another choice.
    fn with_words(self, entry: Entry) -> Option<Self> {
        Some(match self {
            Self::None if entry.ends => Self::Choice(entry.number),
            Self::None => Self::Once(entry.number),
            Self::Once(first) | Self::Choice(first) if first == entry.number => Self::Choice(first),
            Self::Once(_) if entry.is_new() => Self::Ascending,
            Self::Ascending if entry.order.is_ge() => Self::Ascending,
            _ => return None,
        })
    }

    /// Adds the number of an entry with calls; `None` if it is that of another choice, whose calls may have equal indexes.
    fn with_call(self, entry: Entry) -> Option<Self> {
        Some(match self {
            Self::None => Self::Choice(entry.number),
            Self::Choice(first) if first == entry.number => self,
            Self::Choice(_) if entry.order.is_gt() => Self::Ascending,
            Self::Ascending if entry.order.is_ge() => self,
            _ => return None,
        })
    }
}
