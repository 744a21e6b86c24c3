//! `Statement`: its text, and the bound values.

use tokio_postgres::types::{ToSql, Type};

/// A statement with its values. Values are bound in the protocol, and never part of the text.
///
/// The server plans it for its values: for the documents of a tenant, and the selectivity of its conditions.
#[derive(Debug, Default)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    values: Vec<(Box<dyn ToSql + Send + Sync>, Type)>,
}

impl Statement {
    /// Adds a text, and returns its place in the statement.
    pub(crate) fn bind_text(&mut self, value: String) -> String {
        self.bind(value, Type::TEXT)
    }

    /// Adds a list of texts, and returns its place in the statement.
    pub(crate) fn bind_texts(&mut self, values: Vec<String>) -> String {
        self.bind(values, Type::TEXT_ARRAY)
    }

    /// Adds a number, and returns its place in the statement.
    pub(crate) fn bind_number(&mut self, value: i64) -> String {
        self.bind(value, Type::INT8)
    }

    fn bind(&mut self, value: impl ToSql + Send + Sync + 'static, kind: Type) -> String {
        self.values.push((Box::new(value), kind));
        format!("${}", self.values.len())
    }

    /// Returns the values in the form of the driver.
    pub(crate) fn parameters(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        let values = self.values.iter();
        values.map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect()
    }
}
