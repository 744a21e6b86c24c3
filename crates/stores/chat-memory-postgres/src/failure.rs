//! Conversion of the driver's errors to store errors.

use advisor_core::BoxError;
use conversation_store::StoreError;
use deadpool_postgres::PoolError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// The server's error message. Its detail and context are left out, since they quote rows.
#[derive(Debug, thiserror::Error)]
#[error("the server says: {message} (SQLSTATE {code})")]
struct Refusal {
    message: String,
    code: String,
}

/// Converts the error of getting a connection. Nothing was sent.
pub(crate) fn from_pool(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) => before_sending(error),
        PoolError::Timeout(_) => StoreError::unavailable("no connection came free or was made in time"),
        PoolError::PostCreateHook(_) => StoreError::unavailable("a hook of the pool refused the connection"),
        PoolError::Closed => lasting("the pool is closed"),
        PoolError::NoRuntimeSpecified => lasting("the pool has time-outs but no runtime; build it with one"),
    }
}

/// Converts an error that occurred before the statement was sent. Nothing was written.
pub(crate) fn before_sending(error: Error) -> StoreError {
    let retryable = error.as_db_error().is_none_or(may_pass);
    StoreError::Unavailable { retryable, source: Some(reason(error)) }
}

/// Converts the error of a statement that was sent.
pub(crate) fn from_statement(error: Error) -> StoreError {
    match error.as_db_error() {
        Some(said) if leaves_open(said) => StoreError::outcome_unknown(reason(error)),
        Some(said) if said.code().code().starts_with("54") => StoreError::TooLarge,
        Some(said) => StoreError::Unavailable { retryable: may_pass(said), source: Some(reason(error)) },
        None => StoreError::outcome_unknown(reason(error)),
    }
}

/// Converts the error of a statement that only reads: nothing was written in any case.
pub(crate) fn from_reading(error: StoreError) -> StoreError {
    match error {
        StoreError::OutcomeUnknown { source } => StoreError::Unavailable { retryable: true, source },
        error => error,
    }
}

/// Creates the error of a failure that a retry does not resolve.
pub(crate) fn lasting(source: impl Into<BoxError>) -> StoreError {
    StoreError::Unavailable { retryable: false, source: Some(source.into()) }
}

/// Returns whether the statement was rolled back because of concurrent ones.
pub(crate) fn lost_a_race(error: &Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::T_R_SERIALIZATION_FAILURE) || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
}

/// Returns whether the connection is unusable after this error.
pub(crate) fn ends_connection(error: &Error) -> bool {
    error.as_db_error().is_none_or(|said| !matches!(said.parsed_severity(), Some(Severity::Error)))
}

/// Returns whether the outcome is unknown. An error below `FATAL` rolls back its statement; one that ends the
/// connection may come after the commit.
fn leaves_open(said: &DbError) -> bool {
    let undone = matches!(said.parsed_severity(), Some(Severity::Error));
    let unknown = said.code() == &SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN;
    !undone || unknown || said.code().code().starts_with("08")
}

/// Returns whether a retry may succeed later: after lost races, lack of resources, locks, a shutdown, or on a
/// read-only server until its promotion. The first two characters of a code are its class.
fn may_pass(said: &DbError) -> bool {
    let code = said.code();
    code == &SqlState::READ_ONLY_SQL_TRANSACTION
        || ["08", "40", "53", "55", "57", "58"].iter().any(|class| code.code().starts_with(class))
}

fn reason(error: Error) -> BoxError {
    match error.as_db_error() {
        Some(said) => Refusal { message: said.message().into(), code: said.code().code().into() }.into(),
        None => error.into(),
    }
}
