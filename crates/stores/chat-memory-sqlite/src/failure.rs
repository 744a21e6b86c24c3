//! `Failure`: errors of SQLite beside those of the store, and their conversion.

use advisor_core::BoxError;
use conversation_store::StoreError;
use rusqlite::{Error, ErrorCode, Transaction};

/// The reason why work on the file failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite failed, and nothing was written.
    Sqlite(Error),
    Store(StoreError),
}

pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Sqlite(error) => nothing_written(error),
            Failure::Store(error) => error,
        }
    }
}

/// Converts the error of an operation that wrote nothing.
fn nothing_written(error: Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::TooBig) => StoreError::TooLarge,
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::SystemIoFailure
            | ErrorCode::DiskFull
            | ErrorCode::OutOfMemory
            | ErrorCode::OperationInterrupted,
        ) => StoreError::unavailable(error),
        // No statement here violates the schema unless the file is inconsistent.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation) => {
            damaged(None, error)
        }
        _ => lasting(error),
    }
}

/// Creates the error of a conversation that is damaged from entry `seq` on, or outside its entries.
pub(crate) fn damaged(seq: Option<u64>, source: impl Into<BoxError>) -> StoreError {
    StoreError::Corrupt { seq, source: Some(source.into()) }
}

/// Creates the error of a failure that a retry does not resolve.
pub(crate) fn lasting(source: impl Into<BoxError>) -> StoreError {
    StoreError::Unavailable { retryable: false, source: Some(source.into()) }
}

/// Commits the transaction. If that fails, only a lock guarantees that nothing was written. A disk error may come
/// after the last byte of the transaction was written.
pub(crate) fn commit(transaction: Transaction<'_>) -> Result {
    Ok(transaction.commit().map_err(commit_failed)?)
}

fn commit_failed(error: Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::unavailable(error),
        _ => StoreError::outcome_unknown(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn failure(code: i32) -> Error {
        Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn only_transient_failures_are_retryable() {
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_LOCKED, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_FULL] {
            let error = nothing_written(failure(code));
            assert!(matches!(error, StoreError::Unavailable { retryable: true, .. }), "{error:?}");
        }
        let error = nothing_written(failure(ffi::SQLITE_READONLY));
        assert!(matches!(error, StoreError::Unavailable { retryable: false, .. }), "{error:?}");
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_CONSTRAINT_UNIQUE] {
            let error = nothing_written(failure(code));
            assert!(matches!(error, StoreError::Corrupt { seq: None, .. }), "{error:?}");
        }
        assert!(matches!(nothing_written(failure(ffi::SQLITE_TOOBIG)), StoreError::TooLarge));
    }

    #[test]
    fn failed_commit_is_unknown_unless_file_was_locked() {
        assert!(matches!(
            commit_failed(failure(ffi::SQLITE_BUSY)),
            StoreError::Unavailable { retryable: true, .. }
        ));
        for code in [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_FULL] {
            let error = commit_failed(failure(code));
            assert!(matches!(error, StoreError::OutcomeUnknown { .. }), "{error:?}");
        }
    }
}
