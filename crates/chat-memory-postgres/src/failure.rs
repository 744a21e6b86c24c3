//! What the driver's errors mean to those who use a store.

use advisor_core::BoxError;
use conversation_store::StoreError;
use deadpool_postgres::PoolError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// What the server said. Its detail and its context are left out, since they quote rows.
#[derive(Debug, thiserror::Error)]
#[error("the server says: {message} (SQLSTATE {code})")]
struct Refusal {
    message: String,
    code: String,
}

/// The error of a connection that could not be had. Nothing was sent.
pub(crate) fn of_pool(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) => before_sending(error),
        PoolError::Timeout(_) => StoreError::unavailable("no connection came free or was made in time"),
        PoolError::PostCreateHook(_) => StoreError::unavailable("a hook of the pool refused the connection"),
        PoolError::Closed => lasting("the pool is closed"),
        PoolError::NoRuntimeSpecified => lasting("the pool has time-outs but no runtime; build it with one"),
    }
}

/// The error of something that came before the statement. Nothing was written.
pub(crate) fn before_sending(error: Error) -> StoreError {
    let retryable = error.as_db_error().is_none_or(may_pass);
    StoreError::Unavailable { retryable, source: Some(reason(error)) }
}

/// The error of a statement that was sent.
pub(crate) fn of_statement(error: Error) -> StoreError {
    match error.as_db_error() {
        Some(said) if leaves_open(said) => StoreError::outcome_unknown(reason(error)),
        Some(said) if said.code().code().starts_with("54") => StoreError::TooLarge,
        Some(said) => StoreError::Unavailable { retryable: may_pass(said), source: Some(reason(error)) },
        None => StoreError::outcome_unknown(reason(error)),
    }
}

/// The error of a statement that only reads: nothing was written, whatever happened to it.
pub(crate) fn of_reading(error: StoreError) -> StoreError {
    match error {
        StoreError::OutcomeUnknown { source } => StoreError::Unavailable { retryable: true, source },
        error => error,
    }
}

/// Something that trying again does not change.
pub(crate) fn lasting(source: impl Into<BoxError>) -> StoreError {
    StoreError::Unavailable { retryable: false, source: Some(source.into()) }
}

/// Whether the statement was undone because of others that ran at the same time.
pub(crate) fn lost_a_race(error: &Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::T_R_SERIALIZATION_FAILURE) || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
}

/// Whether the connection that gave this error is of no more use.
pub(crate) fn ends_connection(error: &Error) -> bool {
    error.as_db_error().is_none_or(|said| !matches!(said.parsed_severity(), Some(Severity::Error)))
}

/// An error below `FATAL` undoes its statement. One that ends the connection may come after the commit.
fn leaves_open(said: &DbError) -> bool {
    let undone = matches!(said.parsed_severity(), Some(Severity::Error));
    let unknown = said.code() == &SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN;
    !undone || unknown || said.code().code().starts_with("08")
}

/// Whether the server may take the same later: lost races, want of resources, locks, a shutdown, a server
/// that only reads until it is promoted. The first two characters of a code are its class.
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
