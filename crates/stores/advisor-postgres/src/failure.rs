//! `ServerError` and `SetupError`: what errors of the pool and of the server mean.

use advisor_core::{BoxError, Error as ChainError, ErrorKind};
use deadpool_postgres::PoolError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// The reason why the server did not do something. It quotes neither rows nor an address.
#[derive(Debug, thiserror::Error)]
#[error("the database cannot be used")]
#[non_exhaustive]
pub struct ServerError {
    /// Whether a retry may succeed later.
    pub retryable: bool,
    /// The server's words, or those of the driver.
    pub source: BoxError,
}

impl ServerError {
    /// Creates the error of a server that is silent for longer than its timeout.
    #[must_use]
    pub fn silent() -> Self {
        Self::passing("the server did not answer in time")
    }

    pub(crate) fn none_free() -> Self {
        Self::passing("no connection came free or was made in time")
    }

    fn passing(source: &str) -> Self {
        Self { retryable: true, source: source.into() }
    }

    pub(crate) fn lasting(source: impl Into<BoxError>) -> Self {
        Self { retryable: false, source: source.into() }
    }
}

impl From<Error> for ServerError {
    fn from(error: Error) -> Self {
        match error.as_db_error() {
            Some(said) => Self {
                retryable: may_pass(said),
                source: Refusal { message: said.message().into(), code: said.code().code().into() }.into(),
            },
            None => Self { retryable: true, source: error.into() },
        }
    }
}

impl From<PoolError> for ServerError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            PoolError::Timeout(_) => Self::none_free(),
            PoolError::PostCreateHook(_) => Self::passing("a hook of the pool refused the connection"),
            PoolError::Closed => Self::lasting("the pool is closed"),
            PoolError::NoRuntimeSpecified => {
                Self::lasting("the pool has time-outs but no runtime; build it with one")
            }
        }
    }
}

/// The server's error message. Its detail and context are left out, since they quote rows.
#[derive(Debug, thiserror::Error)]
#[error("the server says: {message} (SQLSTATE {code})")]
struct Refusal {
    message: String,
    code: String,
}

/// Returns whether a retry may succeed later: after lost races, lack of resources, locks, a shutdown, or on a
/// read-only server until its promotion. The first two characters of a code are its class.
fn may_pass(said: &DbError) -> bool {
    let code = said.code();
    code == &SqlState::READ_ONLY_SQL_TRANSACTION
        || ["08", "40", "53", "55", "57", "58"].iter().any(|class| code.code().starts_with(class))
}

/// Returns whether the statement was rolled back because of concurrent ones.
#[must_use]
pub fn lost_a_race(error: &Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::T_R_SERIALIZATION_FAILURE) || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
}

/// Returns whether the connection is unusable after this error.
pub(crate) fn ends_connection(error: &Error) -> bool {
    error.as_db_error().is_none_or(|said| !matches!(said.parsed_severity(), Some(Severity::Error)))
}

/// The reason why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The address cannot be parsed. It is not repeated here, since it may contain a password.
    #[error(
        "the address of the database cannot be read; write it as postgres://user:password@host:port/database"
    )]
    Address,
    /// The address requires TLS, which `connect` does not support.
    #[error("the address asks for TLS; make a pool with a TLS connector and pass it to `from_pool`")]
    NeedsTls,
    /// The name of the schema is not allowed.
    #[error(
        "the name of a schema has 1 to 63 characters of a-z, 0-9 and `_`, and begins neither with a digit nor with `pg_`"
    )]
    SchemaName,
    /// A newer version of this crate prepared the schema.
    #[error(
        "the schema is at version {found}, and this version of the crate knows up to {known}; update the crate"
    )]
    Newer {
        /// The version of the schema.
        found: i32,
        /// The newest version that this crate knows.
        known: i32,
    },
    /// The schema has tables of other programs, or of this crate from before its first release.
    #[error("the schema has tables that this crate did not make; choose another schema")]
    Occupied,
    /// The database's encoding is not UTF-8.
    #[error("the database keeps text as {found}; make one with the encoding UTF8")]
    Encoding {
        /// The encoding.
        found: String,
    },
    /// The server cannot be used, or refused a step of the preparation.
    #[error("the database could not be prepared")]
    Server(#[from] ServerError),
}

impl From<SetupError> for ChainError {
    fn from(error: SetupError) -> Self {
        Self::new(ErrorKind::Store, error.to_string()).with_source(error)
    }
}
