//! `SetupError`: why a store was not opened.

use advisor_core::{BoxError, Error, ErrorKind};
use advisor_postgres::ServerError;

/// The reason why a store could not be opened, or an index not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The database or the schema cannot be used.
    #[error(transparent)]
    Database(#[from] advisor_postgres::SetupError),
    /// The database does not have the extension `vector`, and this role cannot create it.
    #[error(
        "the database has no extension `vector`; install pgvector on the server, and run \
         `CREATE EXTENSION vector` as a role that may"
    )]
    NoExtension {
        /// The error of creating it.
        source: BoxError,
    },
    /// The extension `vector` is too old.
    #[error(
        "the extension `vector` is at version {found}, and 0.8 is needed; install a newer pgvector, and run \
         `ALTER EXTENSION vector UPDATE`"
    )]
    OldExtension {
        /// The version in the database.
        found: String,
    },
    /// The number of dimensions is not one that the extension can store, from 1 to 16,000.
    #[error("{found} dimensions cannot be stored; choose an embedding model of 1 to 16,000")]
    Unstorable {
        /// The number of dimensions.
        found: usize,
    },
    /// The documents in the schema have another number of dimensions.
    #[error(
        "the documents in the schema have {stored} dimensions, not {wanted}; use their embedding model, or \
         another schema"
    )]
    Dimensions {
        /// The number of dimensions in the schema.
        stored: usize,
        /// The number of dimensions with which the store is opened.
        wanted: usize,
    },
    /// An index has at most 2,000 dimensions. Searches without one work.
    #[error(
        "an index takes at most 2,000 dimensions, not {found}; let the embedding model return fewer, or \
         search without an index"
    )]
    TooManyForIndex {
        /// The number of dimensions of the store.
        found: usize,
    },
}

impl From<SetupError> for Error {
    fn from(error: SetupError) -> Self {
        Self::new(ErrorKind::Store, error.to_string()).with_source(error)
    }
}

/// Converts an error of the server.
pub(crate) fn refused(error: impl Into<ServerError>) -> SetupError {
    SetupError::Database(error.into().into())
}
