//! `Choices`: which entries of an answer's list of choices are read.

use crate::wire::Choice;

/// What is known of the choices. One answer is asked for, and one is read: the text of the choice that speaks first.
///
/// The numbers alone do not tell answers apart. Some servers count their tokens with them (Q54), so each is higher than the
/// one before. Others put text and calls in different choices (Q55).
#[derive(Debug, Default)]
pub(super) struct Choices {
    highest: Option<u32>,
    speech: Speech,
    calls: Calls,
}

/// The numbers under which text, or something like it, came.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Speech {
    #[default]
    Nothing,
    /// Once, under this number.
    Once(u32),
    /// Repeatedly under this number, which is that of a choice.
    Choice(u32),
    /// As before, and other choices spoke: they are answers of their own, and not read.
    OneOfSeveral(u32),
    /// Under higher and higher numbers, which count tokens.
    Tokens,
}

/// The numbers under which calls came.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Calls {
    #[default]
    None,
    Choice(u32),
    /// Under higher and higher numbers.
    Several,
}

/// An entry belongs to one of several answers, of which more than one was read.
#[derive(Debug)]
pub(super) struct SeveralAnswers;

impl Choices {
    /// Notes an entry. Returns whether it is read.
    #[inline]
    pub(super) fn read(&mut self, choice: &Choice<'_>) -> Result<bool, SeveralAnswers> {
        let number = choice.number();
        let is_higher = self.highest.is_none_or(|highest| number > highest);
        let is_lower = self.highest.is_some_and(|highest| number < highest);
        self.highest = self.highest.max(Some(number));
        if choice.speaks() {
            self.speech = match self.speech {
                Speech::Nothing => Speech::Once(number),
                Speech::Once(first) | Speech::Choice(first) if first == number => Speech::Choice(number),
                Speech::OneOfSeveral(first) => Speech::OneOfSeveral(first),
                Speech::Once(_) if is_higher && choice.is_streamed() => Speech::Tokens,
                Speech::Tokens if !is_lower => Speech::Tokens,
                Speech::Once(first) | Speech::Choice(first)
                    if self.calls == Calls::None || self.calls == Calls::Choice(first) =>
                {
                    Speech::OneOfSeveral(first)
                }
                Speech::Once(_) | Speech::Choice(_) | Speech::Tokens => return Err(SeveralAnswers),
            };
        }
        if matches!(self.speech, Speech::OneOfSeveral(first) if first != number) {
            return Ok(false);
        }
        if choice.calls() {
            // Calls of two choices may have equal indexes.
            self.calls = match self.calls {
                Calls::None => Calls::Choice(number),
                Calls::Choice(first) if first == number => Calls::Choice(first),
                Calls::Choice(_) if is_higher => Calls::Several,
                Calls::Several if !is_lower => Calls::Several,
                Calls::Choice(_) | Calls::Several => return Err(SeveralAnswers),
            };
        }
        Ok(true)
    }

    /// Checks whether a further entry like the last one changes nothing.
    pub(super) fn are_decided(&self) -> bool {
        !matches!(self.speech, Speech::Once(_))
    }

    /// Checks whether an entry like an earlier one means the same as that one.
    pub(super) fn are_repeatable(&self) -> bool {
        self.speech != Speech::Tokens && self.calls != Calls::Several
    }
}
