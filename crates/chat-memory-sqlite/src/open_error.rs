//! `OpenError`: the reason why a file was not opened, and the remedy for the user.

use advisor_core::{BoxError, Error, ErrorKind};
use rusqlite::ErrorCode;

/// The reason why a store could not be opened. The file is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A newer version of this crate has written the file.
    #[error(
        "the file has version {found} of the store's schema, and this program knows versions up to {known}; \
         update the program or open another file"
    )]
    NewerSchema {
        /// The version of the file's schema.
        found: u32,
        /// The newest version that this crate knows.
        known: u32,
    },
    /// The file is no database, or the database of another application.
    #[error("the file exists and is no store of conversations; choose another path")]
    NotAStore,
    /// The file is damaged: another program has written to it, or the disk has lost data.
    #[error(
        "the file is damaged; keep a copy of it, and continue with a backup, or with the output of `sqlite3 FILE .recover`"
    )]
    Damaged(#[source] BoxError),
    /// The file cannot be opened, created or written.
    #[error("the file cannot be opened; see that its folder exists and that both can be written")]
    Unreachable(#[source] BoxError),
    /// Another process kept the file locked for longer than this store waits.
    #[error("another process keeps the file locked; try again later")]
    Busy,
    /// The file system lacks features that several processes on one file need.
    #[error(
        "the file's journal cannot be a write-ahead log but is `{journal}`; choose a path on a local disk"
    )]
    NoWriteAheadLog {
        /// The kind of journal that the file has.
        journal: String,
    },
    /// No tokio runtime is running.
    #[error("a store works off the async threads; open it within a tokio runtime")]
    NoRuntime,
    /// SQLite failed for another reason.
    #[error("the database cannot be used; the error's source has the reason")]
    Sqlite(#[source] BoxError),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotAStore,
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged(error.into()),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                Self::Unreachable(error.into())
            }
            _ => Self::Sqlite(error.into()),
        }
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        Self::new(ErrorKind::Store, error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_service_keeps_the_advice() {
        let error = Error::from(OpenError::NotAStore);
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Store, OpenError::NotAStore.to_string()));
    }
}
