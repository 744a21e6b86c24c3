//! Conversion of the driver's errors to those of vector stores.

use advisor_core::BoxError;
use common_advisors::retrieval::VectorError;
use deadpool_postgres::PoolError;
use tokio_postgres::Error;
use tokio_postgres::error::{Severity, SqlState};

/// The server's error message. Its detail and context are left out, since they quote rows.
#[derive(Debug, thiserror::Error)]
#[error("the server says: {message} (SQLSTATE {code})")]
struct Refusal {
    message: String,
    code: String,
}

/// Converts the error of getting a connection.
pub(crate) fn from_pool(error: PoolError) -> VectorError {
    match error {
        PoolError::Backend(error) => from_statement(error),
        PoolError::Timeout(_) => VectorError::unavailable("no connection came free or was made in time"),
        PoolError::PostCreateHook(_) => VectorError::unavailable("a hook of the pool refused the connection"),
        PoolError::Closed => VectorError::unavailable("the pool is closed"),
        PoolError::NoRuntimeSpecified => {
            VectorError::unavailable("the pool has time-outs but no runtime; build it with one")
        }
    }
}

/// Converts the error of a statement.
pub(crate) fn from_statement(error: Error) -> VectorError {
    VectorError::unavailable(reason(error))
}

/// Returns whether the transaction was rolled back because of concurrent ones.
pub(crate) fn lost_a_race(error: &Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::T_R_SERIALIZATION_FAILURE) || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
}

/// Returns whether the connection is unusable after this error.
pub(crate) fn ends_connection(error: &Error) -> bool {
    error.as_db_error().is_none_or(|said| !matches!(said.parsed_severity(), Some(Severity::Error)))
}

/// Returns the reason of an error, without the rows that the server may quote.
pub(crate) fn reason(error: Error) -> BoxError {
    match error.as_db_error() {
        Some(said) => Refusal { message: said.message().into(), code: said.code().code().into() }.into(),
        None => error.into(),
    }
}
