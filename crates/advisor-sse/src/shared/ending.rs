//! `Ending`: how an answer ends, as far as clients distinguish it.

use advisor_core::FinishReason;
use serde::Serialize;

/// How an answer ends, as far as clients distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The answer is whole.
    Whole,
    /// The client has calls to run.
    ClientCalls,
    /// The answer reached a limit of its length.
    Length,
    /// A filter or a refusal ended it.
    Filtered,
    /// It was interrupted.
    Interrupted,
    /// A limit of the turn ended it, such as a number of rounds or a budget.
    Limit,
}

impl Ending {
    /// Returns the ending of a turn that leaves calls to the client, or none.
    pub(crate) fn new(reason: &FinishReason, has_client_calls: bool) -> Self {
        match reason {
            _ if has_client_calls => Self::ClientCalls,
            FinishReason::Length => Self::Length,
            FinishReason::ContentFilter | FinishReason::Refusal => Self::Filtered,
            FinishReason::Interrupted => Self::Interrupted,
            FinishReason::Limit(_) => Self::Limit,
            _ => Self::Whole,
        }
    }

    /// Returns the reason and a notice if the answer is not whole.
    pub(crate) fn incomplete(self) -> Option<Incomplete> {
        let (reason, message) = match self {
            Self::Whole | Self::ClientCalls => return None,
            Self::Length => ("length", "the answer is cut: it reached its greatest length"),
            Self::Filtered => ("content_filter", "the answer was refused or filtered"),
            Self::Interrupted => ("interrupted", "the answer was interrupted"),
            // Without the words of the limit, which may be those of the application.
            Self::Limit => ("limit", "the answer ended at a limit"),
        };
        Some(Incomplete { reason, message })
    }
}

/// The reason why an answer is not whole, for protocols without a field for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Incomplete {
    /// The reason, as one word.
    pub(crate) reason: &'static str,
    /// A notice for the user.
    pub(crate) message: &'static str,
}
