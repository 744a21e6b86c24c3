//! `SetupError`: why a store was not opened.

use advisor_core::{Error, ErrorKind};
use conversation_store::StoreError;

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
    #[error(
        "the address asks for TLS; make a pool with a TLS connector and pass it to `PostgresStore::from_pool`"
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
    /// The server cannot be used, or refused a step of the preparation.
    #[error("the database could not be prepared")]
    Store(#[from] StoreError),
}

impl From<SetupError> for Error {
    fn from(error: SetupError) -> Self {
        Self::new(ErrorKind::Store, error.to_string()).with_source(error)
    }
}
