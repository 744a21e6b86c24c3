//! `SetupError`: why a store was not opened.

use advisor_core::{BoxError, Error, ErrorKind};
use common_advisors::retrieval::VectorError;

/// The reason why a store could not be opened, or an index not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The address cannot be parsed. It is not repeated here, since it may contain a password.
    #[error(
        "the address of the database cannot be read; write it as postgres://user:password@host:port/database"
    )]
    Address,
    /// The address requires TLS, which `connect` does not support.
    #[error(
        "the address asks for TLS; make a pool with a TLS connector and pass it to `PostgresVectors::from_pool`"
    )]
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
    /// The database's encoding is not UTF-8.
    #[error("the database keeps text as {found}; make one with the encoding UTF8")]
    Encoding {
        /// The encoding.
        found: String,
    },
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
    /// The server cannot be used, or refused a step of the preparation.
    #[error("the database could not be prepared")]
    Store(#[from] VectorError),
}

impl From<SetupError> for Error {
    fn from(error: SetupError) -> Self {
        Self::new(ErrorKind::Store, error.to_string()).with_source(error)
    }
}
