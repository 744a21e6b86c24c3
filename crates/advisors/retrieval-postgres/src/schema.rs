//! `Names`: the quoted names of the PostgreSQL schema and of the extension's, in statements.

use advisor_postgres::Schema;

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
    fn names_in_statements_are_quoted() {
        let names = Names { schema: Schema::new("select").unwrap(), extension: "public".into() };
        assert_eq!(
            names.in_sql("{schema}.x, {schema}.y {<=>}"),
            "\"select\".x, \"select\".y OPERATOR(public.<=>)"
        );
    }
}
