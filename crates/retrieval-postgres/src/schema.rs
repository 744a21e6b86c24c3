//! `Schema`: the checked and quoted name of the PostgreSQL schema. `Names`: that and the extension's, in statements.

use std::fmt;

use crate::SetupError;

/// The name of the PostgreSQL schema with the table of a store.
///
/// Stores in different schemas of one database share nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Schema(String);

/// The maximum length of a name in bytes; PostgreSQL would truncate a longer one.
const LONGEST: usize = 63;

impl Schema {
    /// Creates the schema name.
    ///
    /// # Errors
    /// [`SetupError::SchemaName`] unless it has 1 to 63 characters of `a-z`, `0-9` and `_`. It must start neither
    /// with a digit nor with `pg_`, which the server reserves.
    pub fn new(name: &str) -> Result<Self, SetupError> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let begins_well = !name.starts_with(|first: char| first.is_ascii_digit()) && !name.starts_with("pg_");
        if name.is_empty() || name.len() > LONGEST || !name.bytes().all(allowed) || !begins_well {
            return Err(SetupError::SchemaName);
        }
        Ok(Self(name.into()))
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Replaces `{schema}` in a text by the schema's quoted name.
    pub(crate) fn name_in(&self, sql: &str) -> String {
        sql.replace("{schema}", &format!("\"{}\"", self.0))
    }
}

/// The schema `advisor_vectors`.
impl Default for Schema {
    fn default() -> Self {
        Self("advisor_vectors".into())
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The names in the text of statements: those of the store's schema and of the schema of the extension `vector`.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub(crate) schema: Schema,
    /// The schema of the extension, as the server quotes it.
    pub(crate) extension: String,
}

impl Names {
    /// Replaces `{schema}`, `{vector}` and `{<=>}` in a text by the quoted names.
    ///
    /// Types and operators are found by their schema, whatever the search path of the connection is.
    pub(crate) fn in_sql(&self, sql: &str) -> String {
        let distance = format!("OPERATOR({}.<=>)", self.extension);
        self.schema.name_in(sql).replace("{vector}", &self.extension).replace("{<=>}", &distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_need_care_in_sql_are_refused() {
        let longest = "a".repeat(LONGEST);
        for name in ["advisor_vectors", "_x", "a1", "select", longest.as_str()] {
            assert_eq!(Schema::new(name).unwrap().as_str(), name);
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
