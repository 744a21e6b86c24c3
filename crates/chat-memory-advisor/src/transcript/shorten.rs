//! `Measured` and `Form`: shorter forms of one turn, with placeholders for omitted messages.

use advisor_core::{Message, Role};

use crate::transcript::texts::{LEFT_OUT, MESSAGE_LEFT_OUT};

/// Returns the placeholders for what is left out of a turn: for the rounds between two user messages, for the user
/// messages before the final answer, and for the final answer.
pub(crate) fn stand_ins() -> [Message; 3] {
    [Message::assistant(LEFT_OUT), Message::user(MESSAGE_LEFT_OUT), Message::assistant(MESSAGE_LEFT_OUT)]
}

/// A turn as a window sees it: its messages, their sizes, and the rounds that can be left out.
///
/// A round is a message of the model with the results of its calls. The oldest rounds are left out first, and the
/// last one stays.
#[derive(Debug)]
pub(crate) struct Measured<'a> {
    messages: &'a [Message],
    sizes: Vec<usize>,
    /// The round of each message, if it belongs to one.
    rounds: Vec<Option<usize>>,
    /// The number of rounds.
    count: usize,
    stand_ins: &'a [Message; 3],
    sizes_of_stand_ins: [usize; 3],
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

/// A message that is sent: one of the turn, or a placeholder.
#[derive(Debug, Clone, Copy)]
enum Part {
    At(usize),
    Rounds,
    Question,
    Answer,
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
        let sizes = messages.iter().map(&size).collect();
        let sizes_of_stand_ins = stand_ins.each_ref().map(size);
        Self { messages, sizes, rounds, count, stand_ins, sizes_of_stand_ins }
    }

    /// Returns the form that leaves out as few rounds as needed to fit into `room`, or all but the last.
    pub(crate) fn within(&self, room: usize) -> Form {
        // One by one: a placeholder can be larger than the rounds it replaces, so leaving out more can take more
        // space.
        let mut outs = (0..self.most_out()).map(Form::Without);
        outs.find(|form| self.size_of(*form) <= room).unwrap_or(Form::Without(self.most_out()))
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
        let [rounds, question, answer] = self.sizes_of_stand_ins;
        let size = |part: &Part| match part {
            Part::At(place) => self.sizes.get(*place).copied().unwrap_or_default(),
            Part::Rounds => rounds,
            Part::Question if form == Form::AnswerInFront => 0,
            Part::Question => question,
            Part::Answer => answer,
        };
        self.parts(form).iter().map(size).fold(0, usize::saturating_add)
    }

    pub(crate) fn messages_of(&self, form: Form) -> Vec<Message> {
        let [rounds, question, answer] = self.stand_ins;
        let message = |part: Part| match part {
            Part::At(place) => self.messages.get(place),
            Part::Rounds => Some(rounds),
            Part::Question => Some(question),
            Part::Answer => Some(answer),
        };
        self.parts(form).into_iter().filter_map(message).cloned().collect()
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

    fn parts(&self, form: Form) -> Vec<Part> {
        let last = self.messages.len().saturating_sub(1);
        let round = |place: usize| self.rounds.get(place).copied().flatten();
        match form {
            Form::Without(out) => self.kept(|place| round(place).is_none_or(|round| round >= out)),
            Form::From(start) => self.kept(|place| place == last || (place >= start && self.is_user(place))),
            Form::Answer | Form::AnswerInFront => vec![Part::Question, Part::At(last)],
            Form::Question(start) => {
                let mut parts = self.kept(|place| place >= start && self.is_user(place));
                parts.push(Part::Answer);
                parts
            }
        }
    }

    /// Returns these messages, with a placeholder where two user messages would meet because of a gap.
    fn kept(&self, keeps: impl Fn(usize) -> bool) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut before: Option<usize> = None;
        for place in (0..self.messages.len()).filter(|place| keeps(*place)) {
            let gap = before.filter(|before| before.saturating_add(1) < place);
            if gap.is_some_and(|before| self.is_user(before) && self.is_user(place)) {
                parts.push(Part::Rounds);
            }
            parts.push(Part::At(place));
            before = Some(place);
        }
        parts
    }

    fn is_user(&self, place: usize) -> bool {
        self.messages.get(place).is_some_and(|message| message.role() == Role::User)
    }
}

#[cfg(test)]
mod tests;
