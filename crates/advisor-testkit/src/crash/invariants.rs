//! What must hold in every case, whatever happened to its turns.

mod memory;
mod order;
mod transcripts;

use std::fmt;

use super::Ran;

/// Something that must hold in every case. Each names the laws of `docs/laws.md` that it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Invariant {
    /// M1: what the model is sent is valid, and the user speaks first.
    RequestsAreValid,
    /// M2: what the model is sent, apart from system messages, is what the log tells at that moment.
    MemoryIsThePrompt,
    /// M3: the log is what was appended, in order and whole, without gaps in its versions; a batch that was appended
    /// again changed nothing. After each turn nothing is in it that was not told.
    LogIsWhatWasAppended,
    /// M3: the entries of a turn stand together, and a turn has one input.
    TurnsStandTogether,
    /// M1, T1: after each turn the repaired log is valid, and repairing it again changes nothing.
    RepairingAgainChangesNothing,
    /// O2: the input is stored before the first request.
    InputComesFirst,
    /// O3: an answer is stored before a tool of it starts.
    AnswersPrecedeTools,
    /// O4: every call that is stored has its result stored before the next request.
    ResultsPrecedeRequests,
    /// O5: after a hook or an append has failed, no tool starts, nothing is asked, and the turn does not complete. After
    /// the model has failed neither, until it is asked again inside the loop, or another answer is given there: what
    /// came of a failed answer is no answer.
    FailuresEndTheTurn,
    /// O6, S1: a turn ends, the end is stored before `Completed` comes out, and nothing follows.
    TheEndComesLast,
    /// T5: no call is run twice, and the start of one that must not be is stored before any tool of its round runs.
    ToolsRunOnce,
    /// T4: a loop that begins ends exactly once.
    LoopsEndOnce,
    /// K2, R2: when a turn is over nothing of it is left, and nothing of it goes on.
    NothingIsLeft,
    /// S4, K3, K4: the text that was shown is remembered, once, exactly as it was, and it is what the end of the turn
    /// tells; after a kill that of the open round may be missing. What was shown of an attempt that was restarted is void.
    /// Nothing is told or remembered as shown that was not.
    ShownIsRemembered,
    /// K3: a turn that was rolled back is hidden, unless the process was killed before that was written.
    UndoneIsHidden,
    /// K4, M6: the last turn completes and is remembered so. So the conversation is not busy, nor unusable.
    TheLastTurnWorks,
    /// K4, M5: what is remembered of the last turn is what is remembered of it in a conversation of its own: what happened
    /// before changes neither what it says nor what is answered.
    TheLastTurnIsUnchanged,
}

impl Invariant {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::RequestsAreValid,
        Self::MemoryIsThePrompt,
        Self::LogIsWhatWasAppended,
        Self::TurnsStandTogether,
        Self::RepairingAgainChangesNothing,
        Self::InputComesFirst,
        Self::AnswersPrecedeTools,
        Self::ResultsPrecedeRequests,
        Self::FailuresEndTheTurn,
        Self::TheEndComesLast,
        Self::ToolsRunOnce,
        Self::LoopsEndOnce,
        Self::NothingIsLeft,
        Self::ShownIsRemembered,
        Self::UndoneIsHidden,
        Self::TheLastTurnWorks,
        Self::TheLastTurnIsUnchanged,
    ];

    /// Checks it.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(self, ran: &Ran) -> Result<(), String> {
        match self {
            Self::RequestsAreValid => transcripts::requests_are_valid(ran),
            Self::MemoryIsThePrompt => transcripts::memory_is_the_prompt(ran),
            Self::LogIsWhatWasAppended => memory::log_is_what_was_appended(ran),
            Self::TurnsStandTogether => memory::turns_stand_together(ran),
            Self::RepairingAgainChangesNothing => transcripts::repairing_again_changes_nothing(ran),
            Self::InputComesFirst => order::input_comes_first(ran),
            Self::AnswersPrecedeTools => order::answers_precede_tools(ran),
            Self::ResultsPrecedeRequests => order::results_precede_requests(ran),
            Self::FailuresEndTheTurn => order::failures_end_the_turn(ran),
            Self::TheEndComesLast => order::the_end_comes_last(ran),
            Self::ToolsRunOnce => order::tools_run_once(ran),
            Self::LoopsEndOnce => order::loops_end_once(ran),
            Self::NothingIsLeft => order::nothing_is_left(ran),
            Self::ShownIsRemembered => memory::shown_is_remembered(ran),
            Self::UndoneIsHidden => memory::undone_is_hidden(ran),
            Self::TheLastTurnWorks => memory::the_last_turn_works(ran),
            Self::TheLastTurnIsUnchanged => memory::the_last_turn_is_unchanged(ran),
        }
    }
}

impl Ran {
    /// Checks every invariant but some.
    ///
    /// # Errors
    /// The first invariant that does not hold, with all that happened.
    pub fn check(&self, without: &[Invariant]) -> Result<(), BrokenInvariant> {
        for invariant in Invariant::ALL.into_iter().filter(|invariant| !without.contains(invariant)) {
            if let Err(problem) = invariant.check(self) {
                return Err(BrokenInvariant { invariant, problem, timeline: self.to_string() });
            }
        }
        Ok(())
    }
}

/// An invariant that did not hold, and all that happened.
#[derive(Debug, Clone)]
pub struct BrokenInvariant {
    invariant: Invariant,
    problem: String,
    timeline: String,
}

impl BrokenInvariant {
    /// Which one.
    #[must_use]
    pub fn invariant(&self) -> Invariant {
        self.invariant
    }

    /// What is wrong, without the timeline.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for BrokenInvariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} does not hold: {}\n{}", self.invariant, self.problem, self.timeline)
    }
}

impl std::error::Error for BrokenInvariant {}
