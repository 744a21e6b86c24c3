//! `Names`: the checked and quoted name of the PostgreSQL schema and that of the extension's, in statements.

use crate::SetupError;

/// The maximum length of a name in bytes; PostgreSQL would truncate a longer one.
const LONGEST: usize = 63;

pub(crate) fn check_name(name: &str) -> Result<(), SetupError> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins_well = !name.starts_with(|first: char| first.is_ascii_digit()) && !name.starts_with("pg_");
    let is_allowed = !name.is_empty() && name.len() <= LONGEST && name.bytes().all(allowed) && begins_well;
    if is_allowed { Ok(()) } else { Err(SetupError::SchemaName) }
}

/// The names in the text of statements: those of the store's schema and of the schema of the extension `vector`.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// The checked name.
    pub(crate) schema: String,
    /// The schema of the extension, as the server quotes it.
    pub(crate) extension: String,
}

impl Names {
    /// Replaces `{schema}`, `{vector}` and `{<=>}` in a text by the quoted names.
    ///
    /// Types and operators are found by their schema, whatever the search path of the connection is.
    pub(crate) fn in_sql(&self, sql: &str) -> String {
        let distance = format!("OPERATOR({}.<=>)", self.extension);
        sql.replace("{schema}", &format!("\"{}\"", self.schema))
            .replace("{vector}", &self.extension)
            .replace("{<=>}", &distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_need_care_in_sql_are_refused() {
        let longest = "a".repeat(LONGEST);
        for name in ["advisor_vectors", "_x", "a1", "select", longest.as_str()] {
            check_name(name).unwrap();
        }
        let longer = "a".repeat(LONGEST + 1);
        for name in ["", "1a", "pg_a", "A", "a-b", "a\"b", "a;b", "a b", "ä", "a\0", longer.as_str()] {
            assert!(matches!(check_name(name), Err(SetupError::SchemaName)), "{name}");
        }
        let names = Names { schema: "select".into(), extension: "public".into() };
        assert_eq!(
            names.in_sql("{schema}.x, {schema}.y {<=>}"),
            "\"select\".x, \"select\".y OPERATOR(public.<=>)"
        );
    }
}
