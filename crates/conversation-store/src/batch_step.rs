//! `BatchStep` and `RoundStep`: the step in a batch's key, with the text that is stored.

use std::fmt;

use advisor_core::Text;
use uuid::Uuid;

use crate::Version;

/// The step of a turn that a batch writes. Turn, round and step make up the [key](crate::BatchKey) of the batch.
///
/// Its text is stored, so it never changes. A store accepts any text of up to 512 bytes; these are the steps that memory
/// and imports write.
///
/// # Example
/// ```
/// use conversation_store::{BatchStep, RoundStep, Version};
///
/// assert_eq!(BatchStep::Input.to_string(), "input");
/// let again = BatchStep::Round { what: RoundStep::Answer, times: 2, resumed_at: Some(Version::new(7)) };
/// assert_eq!(again.to_string(), "answer-2-again-7");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BatchStep {
    /// The input of a turn.
    Input,
    /// The input of a turn that was interrupted and resumed at this version.
    Resumed(Version),
    /// A part of a round that became final.
    Round {
        /// The part of the round.
        what: RoundStep,
        /// The number of times this part of the round has been written, from 1.
        times: u32,
        /// The version at which the turn was resumed, if it was interrupted.
        resumed_at: Option<Version>,
    },
    /// The starts of calls that must not run twice. The id is unique each time. If two runs write the same starts,
    /// only one append is acknowledged.
    Starts(Uuid),
    /// The end of an interrupted turn, written on its behalf at this version.
    Closed(Version),
    /// A turn of an imported conversation, by the number of its first entry.
    Imported(u64),
}

/// A part of a round that is written in one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RoundStep {
    /// Messages added to the request of the round.
    Input,
    /// The answer.
    Answer,
    /// The results of its calls.
    Results,
    /// Messages that a hook of the loop added.
    Injected,
    /// The end of the turn.
    End,
}

impl fmt::Display for RoundStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Answer => "answer",
            Self::Results => "results",
            Self::Injected => "injected",
            Self::End => "end",
        })
    }
}

impl fmt::Display for BatchStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input => f.write_str("input"),
            Self::Resumed(version) => write!(f, "again-{version}"),
            Self::Round { what, times: 1, resumed_at: None } => what.fmt(f),
            Self::Round { what, times, resumed_at: None } => write!(f, "{what}-{times}"),
            Self::Round { what, times, resumed_at: Some(version) } => {
                write!(f, "{what}-{times}-again-{version}")
            }
            Self::Starts(id) => write!(f, "started-{id}"),
            Self::Closed(version) => write!(f, "seal-{version}"),
            Self::Imported(seq) => write!(f, "import-{seq}"),
        }
    }
}

impl From<BatchStep> for Text {
    fn from(step: BatchStep) -> Self {
        step.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_step_never_changes() {
        let round = |what, times, resumed_at| BatchStep::Round { what, times, resumed_at };
        let at = Version::new(9);
        let table = [
            (BatchStep::Input, "input"),
            (BatchStep::Resumed(at), "again-9"),
            (round(RoundStep::Input, 1, None), "input"),
            (round(RoundStep::Answer, 1, None), "answer"),
            (round(RoundStep::Results, 1, None), "results"),
            (round(RoundStep::Injected, 1, None), "injected"),
            (round(RoundStep::End, 1, None), "end"),
            (round(RoundStep::Results, 3, None), "results-3"),
            (round(RoundStep::Answer, 1, Some(at)), "answer-1-again-9"),
            (BatchStep::Starts(Uuid::nil()), "started-00000000-0000-0000-0000-000000000000"),
            (BatchStep::Closed(at), "seal-9"),
            (BatchStep::Imported(4), "import-4"),
        ];
        for (step, text) in table {
            assert_eq!(Text::from(step), *text);
        }
    }
}
