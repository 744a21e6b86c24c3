//! `Table`: names and numbers as a table in Markdown.

use std::fmt;

/// A table in Markdown; the first column holds names, the others hold numbers.
pub(crate) struct Table(Vec<Vec<String>>);

impl Table {
    pub(crate) fn new(head: &[impl ToString]) -> Self {
        Self(vec![head.iter().map(ToString::to_string).collect()])
    }

    pub(crate) fn row(&mut self, name: &str, cells: impl IntoIterator<Item = String>) {
        self.0.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        for (index, cells) in self.0.iter().enumerate() {
            writeln!(f, "{}", line(cells))?;
            if index == 0 {
                writeln!(f, "| --- |{}", " ---: |".repeat(cells.len().saturating_sub(1)))?;
            }
        }
        Ok(())
    }
}
