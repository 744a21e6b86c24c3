//! `Schema`: where the tables of a store are; `SetupError`: the reason why a store could not be opened.

use advisor_core::{Error, ErrorKind};
use conversation_store::StoreError;

/// The checked name of the PostgreSQL schema with the store's tables and functions.
#[derive(Clone)]
pub(crate) struct Schema(String);

/// The maximum length of a name in bytes; PostgreSQL would truncate a longer one.
const LONGEST: usize = 63;

impl Schema {
    pub(crate) fn new(name: &str) -> Result<Self, SetupError> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let begins_well = !name.starts_with(|first: char| first.is_ascii_digit()) && !name.starts_with("pg_");
        if name.is_empty() || name.len() > LONGEST || !name.bytes().all(allowed) || !begins_well {
            return Err(SetupError::SchemaName);
        }
        Ok(Self(name.into()))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Replaces `{schema}` in a text by the schema's quoted name.
    pub(crate) fn name_in(&self, sql: &str) -> String {
        sql.replace("{schema}", &format!("\"{}\"", self.0))
    }
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
    Store(#[from] StoreError),
}

impl From<SetupError> for Error {
    fn from(error: SetupError) -> Self {
        Self::new(ErrorKind::Store, error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_need_care_in_sql_are_refused() {
        let longest = "a".repeat(LONGEST);
        for name in ["advisor_memory", "_x", "a1", "select", longest.as_str()] {
            assert_eq!(Schema::new(name).unwrap().name(), name);
        }
        let longer = "a".repeat(LONGEST + 1);
        for name in ["", "1a", "pg_a", "A", "a-b", "a\"b", "a;b", "a b", "ä", "a\0", longer.as_str()] {
            assert!(matches!(Schema::new(name), Err(SetupError::SchemaName)), "{name}");
        }
        assert_eq!(
            Schema::new("select").unwrap().name_in("{schema}.x, {schema}.y"),
            "\"select\".x, \"select\".y"
        );
    }
}
