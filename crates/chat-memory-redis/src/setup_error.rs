//! `SetupError`: why a store was not opened.

use advisor_core::{Error, ErrorKind};
use conversation_store::StoreError;

/// The reason why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The address cannot be parsed. It is not repeated here, since it may contain a password.
    #[error("the address of the server cannot be read; write it as redis://user:password@host:port/number")]
    Address,
    /// The address requires TLS, which this build does not support.
    #[error(
        "the address asks for TLS; turn on the feature `native-tls`, or a TLS feature of the crate `redis`"
    )]
    NeedsTls,
    /// The prefix is not allowed.
    #[error("a prefix of keys has 1 to 64 characters of A-Z, a-z, 0-9, `-`, `_`, `.` and `:`")]
    Prefix,
    /// The server cannot be used, or refused the probe.
    #[error("the server could not be used")]
    Store(#[from] StoreError),
}

impl From<SetupError> for Error {
    fn from(error: SetupError) -> Self {
        Self::new(ErrorKind::Store, error.to_string()).with_source(error)
    }
}
