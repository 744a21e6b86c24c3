//! Conversion of the driver's errors to store errors.

use advisor_core::BoxError;
use advisor_postgres::ServerError;
use conversation_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Converts an error that occurred before the statement was sent. Nothing was written.
pub(crate) fn before_sending(error: impl Into<ServerError>) -> StoreError {
    let ServerError { retryable, source, .. } = error.into();
    StoreError::Unavailable { retryable, source: Some(source) }
}

/// Converts the error of a statement that was sent.
pub(crate) fn from_statement(error: Error) -> StoreError {
    match error.as_db_error() {
        Some(said) if leaves_open(said) => StoreError::outcome_unknown(ServerError::from(error).source),
        Some(said) if said.code().code().starts_with("54") => StoreError::TooLarge,
        Some(_) => before_sending(error),
        None => StoreError::outcome_unknown(ServerError::from(error).source),
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

/// Returns whether the outcome is unknown. An error below `FATAL` rolls back its statement; one that ends the
/// connection may come after the commit.
fn leaves_open(said: &DbError) -> bool {
    let undone = matches!(said.parsed_severity(), Some(Severity::Error));
    let unknown = said.code() == &SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN;
    !undone || unknown || said.code().code().starts_with("08")
}
