//! `End`: the progress of an answer towards its end.

/// The progress of an answer towards its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum End {
    /// The answer continues.
    Open,
    /// A finish reason came. More calls and usage may follow.
    Finished,
    /// The end came. Only usage may follow.
    Done,
}
