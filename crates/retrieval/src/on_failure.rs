//! `OnFailure`: the continuation of a turn if retrieval fails.

use advisor_core::Error;

/// The continuation of a turn if retrieval fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFailure {
    /// The turn ends with the error.
    #[default]
    Fail,
    /// The turn continues without what failed. A warning is logged.
    Continue,
}

impl OnFailure {
    /// Returns the error, or logs it without any content. `what` failed.
    pub(crate) fn unless_continued(
        self,
        advisor: &str,
        what: &'static str,
        error: Error,
    ) -> Result<(), Error> {
        match self {
            Self::Fail => Err(error),
            Self::Continue => {
                warn(advisor, what, &error);
                Ok(())
            }
        }
    }
}

/// Logs an error without any content. `what` failed.
pub(crate) fn warn(advisor: &str, what: &'static str, error: &Error) {
    let kind = error.kind().as_str();
    tracing::warn!(advisor, kind, what, "retrieval failed, and the turn continues");
}
