//! `RelayError`: why a call of a relay failed.

use std::fmt;

use advisor_core::{BoxError, Error, ErrorKind};

/// The reason why a [`TurnRelay`](super::TurnRelay) failed. The server logs it, and no client reads it.
#[derive(Debug)]
pub struct RelayError(BoxError);

impl RelayError {
    /// Creates the error. The reason must have no secret, such as a password in an address, and no content of turns.
    #[must_use]
    pub fn new(reason: impl Into<BoxError>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the relay of turns failed")
    }
}

impl std::error::Error for RelayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

impl From<RelayError> for Error {
    fn from(error: RelayError) -> Self {
        Self::new(ErrorKind::Store, "turns of other processes cannot be reached").with_source(error)
    }
}
