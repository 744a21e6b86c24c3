//! `ListState` and `Progress`: the place in a list of calls, and whether reading goes on.

/// The place in a list of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListState {
    /// Before the first call, without a list.
    Before,
    /// In a list of calls.
    List,
    /// After a call that was not in a list.
    After,
}

/// Whether reading goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Made,
    /// More text is needed.
    Waits,
    /// The calls have ended.
    Ended,
}

impl ListState {
    /// Returns the place after a call.
    pub(super) fn after_call(self) -> Self {
        match self {
            Self::List => Self::List,
            Self::Before | Self::After => Self::After,
        }
    }
}
