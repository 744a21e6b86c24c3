use advisor_core::FinishReason;

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
}

impl Ending {
    /// Returns the ending of a turn that leaves calls to the client, or none.
    pub(crate) fn new(reason: &FinishReason, has_client_calls: bool) -> Self {
        match reason {
            _ if has_client_calls => Self::ClientCalls,
            FinishReason::Length => Self::Length,
            FinishReason::ContentFilter | FinishReason::Refusal => Self::Filtered,
            FinishReason::Interrupted => Self::Interrupted,
            _ => Self::Whole,
        }
    }

    /// Returns a notice for the user if the answer is cut.
    pub(crate) fn notice(self) -> Option<&'static str> {
        match self {
            Self::Whole | Self::ClientCalls => None,
            Self::Length => Some("the answer is cut: it reached its greatest length"),
            Self::Filtered => Some("the answer was refused or filtered"),
            Self::Interrupted => Some("the answer was interrupted"),
        }
    }
}
