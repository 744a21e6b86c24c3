//! `OnFailure` and `OnDeny`: what becomes of a call if its judge fails, or denies it.

/// The result of a judge that gives no verdict: after an error, a timeout or a panic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnFailure {
    /// The block is denied: fail-secure.
    #[default]
    Deny,
    /// The block is emitted, with a warning in the log: fail-open.
    Allow,
    /// The answer fails with the judge's error.
    Fail,
}

/// The result of a denied block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnDeny {
    /// The denial text takes the place of the block, and the answer goes on.
    #[default]
    Continue,
    /// The answer ends after the denial text, with
    /// [`ContentFilter`](advisor_core::FinishReason::ContentFilter). Judges of later blocks are dropped, and those
    /// that wait are not called. No call of the answer runs.
    ///
    /// Text that streamed while the judge worked stays in it. The response lacks its id, its model and its token
    /// counts if the model has not ended: they come last.
    EndAnswer,
}
