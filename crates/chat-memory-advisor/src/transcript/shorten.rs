//! `Measured` and `Form`: shorter forms of one turn, with placeholders for omitted messages.

use std::iter;

use advisor_core::{Message, Role};

use crate::transcript::texts::{LEFT_OUT, MESSAGE_LEFT_OUT};

/// Returns the placeholders for what is left out of a turn: for the rounds between two user messages, for the user
/// messages before the final answer, and for the final answer.
pub(crate) fn stand_ins() -> [Message; 3] {
    [Message::assistant(LEFT_OUT), Message::user(MESSAGE_LEFT_OUT), Message::assistant(MESSAGE_LEFT_OUT)]
}

/// A message and its size.
type Part<'a> = (&'a Message, usize);

/// A turn as a window sees it: its messages, their sizes, and the rounds that can be left out.
///
/// A round is a message of the model with the results of its calls. The oldest rounds are left out first, and the
/// last one stays.
#[derive(Debug)]
pub(crate) struct Measured<'a> {
    /// Each message with its size.
    messages: Vec<Part<'a>>,
    /// The round of each message, if it belongs to one.
    rounds: Vec<Option<usize>>,
    /// The number of rounds.
    count: usize,
    stand_ins: [Part<'a>; 3],
}

/// The part of a turn that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// All messages but this many of the oldest rounds.
    Without(usize),
    /// The user messages from this index on, and the final answer.
    From(usize),
    /// A placeholder for the user messages, and the final answer.
    Answer,
    /// The same, where the placeholder takes no room.
    AnswerInFront,
    /// The user messages from this index on, and a placeholder for the final answer.
    Question(usize),
}

impl<'a> Measured<'a> {
    /// Measures a turn in which these messages begin a round.
    ///
    /// In a turn of the past every answer does, but in the running turn only answers with calls do.
    pub(crate) fn new(
        messages: &'a [Message],
        size: impl Fn(&Message) -> usize,
        stand_ins: &'a [Message; 3],
        begins_round: impl Fn(&Message) -> bool,
    ) -> Self {
        let mut count = 0;
        let round = |message: &Message| {
            count += usize::from(begins_round(message));
            let belongs = begins_round(message) || message.role() == Role::Tool;
            count.checked_sub(1).filter(|_| belongs)
        };
        let rounds = messages.iter().map(round).collect();
        let sized = |message: &'a Message| (message, size(message));
        Self {
            messages: messages.iter().map(sized).collect(),
            rounds,
            count,
            stand_ins: stand_ins.each_ref().map(sized),
        }
    }

    /// Returns the form that leaves out as few rounds as needed to fit into `room`, or all but the last.
    pub(crate) fn within(&self, room: usize) -> Form {
        let mut sizes = self.sizes_of_rounds().into_iter();
        let whole = self.messages.iter().map(|(_, size)| wide(*size)).sum();
        // One by one: a placeholder can be larger than the rounds it replaces, so leaving out more can take more
        // space.
        let mut left = iter::successors(Some(whole), |left: &i128| Some(left - sizes.next()?));
        let out = left.by_ref().take(self.most_out()).position(|size| size <= wide(room));
        Form::Without(out.unwrap_or(self.most_out()))
    }

    /// Returns by how much each round makes the turn smaller, if it is left out beside all before it.
    fn sizes_of_rounds(&self) -> Vec<i128> {
        let mut sizes = vec![0; self.count];
        let (mut last_kept, mut last_round) = (None, None);
        for (place, ((message, size), round)) in self.messages.iter().zip(&self.rounds).enumerate() {
            let is_user = message.role() == Role::User;
            match round {
                Some(round) => {
                    sizes.get_mut(*round).into_iter().for_each(|sum| *sum += wide(*size));
                    last_round = Some(*round);
                }
                None => {
                    // With the last round between two user messages, a placeholder comes in.
                    let gap =
                        last_kept.filter(|(before, was_user)| is_user && *was_user && before + 1 < place);
                    let closed = gap.and(last_round).and_then(|round| sizes.get_mut(round));
                    closed.into_iter().for_each(|sum| *sum -= wide(self.stand_ins[0].1));
                    last_kept = Some((place, is_user));
                }
            }
        }
        sizes
    }

    /// Returns the user messages and the final answer of a turn of the past, as much as fits into `room`, if
    /// anything does. If needed, it leaves out the oldest user messages, or uses a placeholder for either part.
    pub(crate) fn said(&self, room: usize) -> Option<Form> {
        let users: Vec<_> = (0..self.messages.len()).filter(|place| self.is_user(*place)).collect();
        let fits = |form: &Form| self.size_of(*form) <= room;
        let first_of = |form: fn(usize) -> Form| {
            let place = users.partition_point(|place| !fits(&form(*place)));
            users.get(place).map(|place| form(*place))
        };
        let all = [Form::Without(self.most_out()), self.within(room)].into_iter().find(fits);
        let answers = || [Form::Answer, Form::AnswerInFront].into_iter().find(fits);
        all.or_else(|| first_of(Form::From)).or_else(answers).or_else(|| first_of(Form::Question))
    }

    pub(crate) fn size_of(&self, form: Form) -> usize {
        self.parts(form).iter().map(|(_, size)| *size).fold(0, usize::saturating_add)
    }

    pub(crate) fn messages_of(&self, form: Form) -> Vec<Message> {
        self.parts(form).into_iter().map(|(message, _)| message.clone()).collect()
    }

    /// Returns the messages without the oldest rounds, as few as needed for the rest to fit into `room`. If the
    /// rest cannot fit, leaves out all rounds but the last, which the model may not have read yet.
    pub(crate) fn shortened(&self, room: usize) -> Vec<Message> {
        self.messages_of(self.within(room))
    }

    /// Returns how many rounds can be left out.
    fn most_out(&self) -> usize {
        self.count.saturating_sub(1)
    }

    /// Returns the messages that are sent, each with its size.
    fn parts(&self, form: Form) -> Vec<Part<'a>> {
        let last = self.messages.len().saturating_sub(1);
        let round = |place: usize| self.rounds.get(place).copied().flatten();
        let [_, question, answer] = self.stand_ins;
        let with_question = |question| iter::once(question).chain(self.messages.last().copied()).collect();
        match form {
            Form::Without(out) => self.kept(|place| round(place).is_none_or(|round| round >= out)),
            Form::From(start) => self.kept(|place| place == last || (place >= start && self.is_user(place))),
            Form::Answer => with_question(question),
            Form::AnswerInFront => with_question((question.0, 0)),
            Form::Question(start) => {
                let mut parts = self.kept(|place| place >= start && self.is_user(place));
                parts.push(answer);
                parts
            }
        }
    }

    /// Returns these messages, with a placeholder where two user messages would meet because of a gap.
    fn kept(&self, keeps: impl Fn(usize) -> bool) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        let mut before: Option<usize> = None;
        for (place, part) in self.messages.iter().enumerate().filter(|(place, _)| keeps(*place)) {
            let gap = before.filter(|before| before.saturating_add(1) < place);
            if gap.is_some_and(|before| self.is_user(before) && self.is_user(place)) {
                parts.push(self.stand_ins[0]);
            }
            parts.push(*part);
            before = Some(place);
        }
        parts
    }

    fn is_user(&self, place: usize) -> bool {
        self.messages.get(place).is_some_and(|(message, _)| message.role() == Role::User)
    }
}

/// Widens a size, so that no sum of sizes overflows.
fn wide(size: usize) -> i128 {
    i128::try_from(size).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests;
