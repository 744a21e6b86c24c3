//! `Reference`: the expected state of the conversation, and `Expected`, the expected outcome of a turn.

use advisor_tests::prelude::*;

use crate::state_machine::answers::words_of_user;
use crate::state_machine::operation::Script;
use crate::state_machine::reading::Over;
use crate::state_machine::shown::Shown;
use crate::state_machine::world::Broken;

/// The expected state of the conversation, from the operations and their outcomes.
#[derive(Default)]
pub(crate) struct Reference {
    pub(crate) turns: Vec<Turn>,
    /// The last seen log, and the part of it on the branch that was written last.
    pub(crate) log: Vec<Entry>,
    pub(crate) path: Vec<Entry>,
    /// The log of another conversation.
    pub(crate) elsewhere: Vec<Entry>,
    pub(crate) deletions: usize,
    /// The text that readers received of turns that did not end.
    pub(crate) shown: Vec<Shown>,
}

/// A turn that was submitted.
pub(crate) struct Turn {
    pub(crate) id: TurnId,
    pub(crate) said: String,
    pub(crate) script: Script,
    /// The answer that its user received. It must not be lost.
    pub(crate) answer: Option<String>,
    /// A user undid the turn when its answer was stored, or was being stored. The same answer, given again by
    /// another process, cannot be distinguished from it.
    pub(crate) is_undone: bool,
}

/// The expected outcome of a turn that is not stopped.
pub(crate) enum Expected {
    Answer,
    /// The turn had this answer, and the model is not asked again.
    Same(String),
    /// The turn stopped before. It continues, unless it cannot.
    AnswerOrRefusal,
    /// The store fails, but no other writer interferes.
    NoConflict,
    Anything,
}

impl Expected {
    pub(crate) fn check(&self, over: &Over, asked: usize) -> Result<(), Broken> {
        let is_as_expected = match (self, over) {
            (_, Over::Reached) | (Self::Anything, _) => true,
            (Self::Same(answer), Over::Completed(text)) => answer == text && asked == 0,
            (Self::Answer | Self::AnswerOrRefusal | Self::NoConflict, Over::Completed(_)) => true,
            (Self::AnswerOrRefusal, Over::Failed(kind)) => *kind == ErrorKind::TurnIdReused,
            (Self::NoConflict, Over::Failed(kind)) => !matches!(kind, ErrorKind::StoreConflict { .. }),
            _ => false,
        };
        let expected = match self {
            Self::Same(answer) => format!("the answer {answer:?} again"),
            Self::AnswerOrRefusal => String::from("an answer, or a refusal"),
            Self::NoConflict => String::from("an answer, or the failure of the store"),
            _ => String::from("an answer"),
        };
        let problem = || format!("K4: a turn came to {over:?} after {asked} requests, instead of {expected}");
        if is_as_expected { Ok(()) } else { Err(problem()) }
    }
}

impl Reference {
    /// A turn that was never submitted before; gives its number.
    pub(crate) fn new_turn(&mut self, script: Script) -> usize {
        let number = self.turns.len();
        let id = TurnId::new(&format!("t{number}")).unwrap();
        let said = words_of_user("c", number, script);
        self.turns.push(Turn::new(id, said, script));
        number
    }

    pub(crate) fn acknowledge(&mut self, nth: usize, text: &str) -> Result<(), Broken> {
        match self.turns[nth].answer.replace(text.into()) {
            Some(before) if before != text => {
                Err(format!("a turn that was answered {before:?} was answered {text:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Resets the state of a deleted conversation. A suspended turn may not have begun yet, and may then begin
    /// the next conversation. If a user undid that turn, it stays undone.
    pub(crate) fn is_deleted(&mut self, standing: Option<usize>) {
        self.deletions += 1;
        self.log.clear();
        self.path.clear();
        self.shown.clear();
        // Submitted again, they are turns of another conversation.
        for (number, turn) in self.turns.iter_mut().enumerate() {
            if Some(number) == standing {
                turn.answer = None;
                continue;
            }
            let id = TurnId::new(&format!("t{number}-{}", self.deletions)).unwrap();
            *turn = Turn::new(id, std::mem::take(&mut turn.said), turn.script);
        }
    }

    /// Returns whether the branch that was written last has the answer of this turn.
    pub(crate) fn is_on_path(&self, turn: &Turn) -> bool {
        turn.is_answered_in(&self.path)
    }
}

impl Turn {
    fn new(id: TurnId, said: String, script: Script) -> Self {
        Self { id, said, script, answer: None, is_undone: false }
    }

    /// Returns whether a log has its answer and its end.
    pub(crate) fn is_answered_in(&self, log: &[Entry]) -> bool {
        let own: Vec<_> = log.iter().filter(|entry| entry.turn == self.id).collect();
        let is_answer = |entry: &Entry| {
            let message = entry.kind.as_message().filter(|message| message.role() == Role::Assistant);
            message.is_some_and(|message| Some(message.text()) == self.answer)
        };
        let is_end = |entry: &Entry| matches!(&entry.kind, EntryKind::TurnEnded(TurnEnd::Completed(reason)) if *reason != FinishReason::Paused);
        own.windows(2).any(|pair| is_answer(pair[0]) && is_end(pair[1]))
    }

    /// Returns whether a transcript contains its answer.
    pub(crate) fn is_answered_for(&self, transcript: &[Message]) -> bool {
        let own = transcript.iter().skip_while(|message| message.text() != self.said);
        let mut answers = own.skip(1).take_while(|message| message.role() != Role::User);
        answers.any(|message| message.role() == Role::Assistant && Some(message.text()) == self.answer)
    }
}
