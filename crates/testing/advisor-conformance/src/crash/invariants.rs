//! Conditions that must hold in every case, after any fault.
//!
//! They relate events to events and prescribe no answer, since an advisor may answer from a cache or ask
//! again.

mod memory;
mod order;
mod transcripts;

use std::fmt;

use super::CaseRun;

/// Fails if something was seen that must not be.
fn broken_if(is_seen: bool, seen: impl FnOnce() -> String) -> Result<(), String> {
    if is_seen { Err(seen()) } else { Ok(()) }
}

/// A condition that must hold in every case. Each names its laws in `docs/guarantees.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Invariant {
    /// M1: each request is valid, and the user speaks first.
    RequestsAreValid,
    /// M2: each request, apart from system messages, is the repaired log at that moment.
    MemoryIsThePrompt,
    /// M3: the log holds the appended entries, in order and complete, without gaps in its versions. A batch
    /// that was appended again changed nothing. After each turn the log holds no entry whose append was not
    /// recorded.
    LogIsWhatWasAppended,
    /// M3: the entries of a turn are adjacent, and a turn has one input.
    TurnsStandTogether,
    /// M1, T1: after each turn the repaired log is valid, and repairing it again changes nothing.
    RepairingAgainChangesNothing,
    /// O2: the input is stored before the first request.
    InputComesFirst,
    /// O3: an answer is stored before any of its tools starts.
    AnswersPrecedeTools,
    /// O4: the result of every stored call is stored before the next request.
    ResultsPrecedeRequests,
    /// O5: after a failed hook or append, no tool starts, no request is sent, and the turn does not complete.
    /// The same holds after the model has failed, until the model is asked again inside the loop or another
    /// answer is given there. A part of a failed answer is no answer.
    FailuresEndTheTurn,
    /// O6, S1: a turn ends, its end is stored before `Completed` is emitted, and nothing follows.
    TheEndComesLast,
    /// T5: no call runs twice. The start of a call that must not run twice is stored before the loop runs any tool
    /// of its round. Outside the loop, it is stored before the call runs.
    ToolsRunOnce,
    /// T4: a loop that begins ends exactly once.
    LoopsEndOnce,
    /// K2, R2: when a turn has ended, nothing of it remains or continues.
    NothingIsLeft,
    /// S4, K3, K4: the shown text is remembered once, exactly as it was, and equals the text at the end of the
    /// turn. After a kill, the text of the open round may be missing. Shown text of a restarted attempt is
    /// void. No other text is reported or remembered as shown.
    ShownIsRemembered,
    /// K3: a turn that was rolled back is hidden, unless the process was killed before the rollback was
    /// written.
    UndoneIsHidden,
    /// K4, M6: the last turn completes and is remembered as completed. So the conversation is neither busy nor
    /// unusable.
    TheLastTurnWorks,
    /// K4, M5: the last turn is remembered as it is in a separate conversation. Earlier events change neither
    /// its input nor its answers.
    TheLastTurnIsUnchanged,
}

type Check = fn(&CaseRun) -> Result<(), String>;

/// Each invariant with its check, which returns a description of the problem.
pub(super) const INVARIANTS: [(Invariant, Check); 17] = [
    (Invariant::RequestsAreValid, transcripts::requests_are_valid),
    (Invariant::MemoryIsThePrompt, transcripts::memory_is_the_prompt),
    (Invariant::LogIsWhatWasAppended, memory::log_is_what_was_appended),
    (Invariant::TurnsStandTogether, memory::turns_are_contiguous),
    (Invariant::RepairingAgainChangesNothing, transcripts::repairing_again_changes_nothing),
    (Invariant::InputComesFirst, order::input_comes_first),
    (Invariant::AnswersPrecedeTools, order::answers_precede_tools),
    (Invariant::ResultsPrecedeRequests, order::results_precede_requests),
    (Invariant::FailuresEndTheTurn, order::failures_end_the_turn),
    (Invariant::TheEndComesLast, order::the_end_comes_last),
    (Invariant::ToolsRunOnce, order::tools_run_once),
    (Invariant::LoopsEndOnce, order::loops_end_once),
    (Invariant::NothingIsLeft, order::nothing_is_left),
    (Invariant::ShownIsRemembered, memory::shown_is_remembered),
    (Invariant::UndoneIsHidden, memory::undone_is_hidden),
    (Invariant::TheLastTurnWorks, memory::the_last_turn_works),
    (Invariant::TheLastTurnIsUnchanged, memory::the_last_turn_is_unchanged),
];

impl CaseRun {
    /// Checks every invariant except those in `without`.
    ///
    /// # Errors
    /// The first invariant that does not hold, with the timeline.
    pub fn check(&self, without: &[Invariant]) -> Result<(), BrokenInvariant> {
        for (invariant, check) in INVARIANTS.iter().filter(|(invariant, _)| !without.contains(invariant)) {
            if let Err(problem) = check(self) {
                let invariant = *invariant;
                return Err(BrokenInvariant { invariant, problem, timeline: self.to_string() });
            }
        }
        Ok(())
    }
}

/// An invariant that did not hold.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BrokenInvariant {
    /// The invariant.
    pub invariant: Invariant,
    /// The problem, in one sentence.
    pub problem: String,
    /// The events of the case.
    pub timeline: String,
}

impl fmt::Display for BrokenInvariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} does not hold: {}\n{}", self.invariant, self.problem, self.timeline)
    }
}

impl std::error::Error for BrokenInvariant {}
