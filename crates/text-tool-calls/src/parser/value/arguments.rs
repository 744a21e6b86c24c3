//! `ArgumentsWriter`: writes arguments as JSON while their values arrive.

use std::collections::HashSet;

use serde_json::Value;

use crate::parser::event::Output;

/// Writes the arguments of a call as one JSON object, member by member, while their values arrive.
///
/// The first value of a name counts; later ones are left out.
#[derive(Debug, Default)]
pub(in crate::parser) struct ArgumentsWriter {
    names: HashSet<String>,
    ignored: Vec<String>,
    /// Whether the open value is left out.
    muted: bool,
    /// Whether the open string has no characters yet.
    string_is_empty: bool,
}

impl ArgumentsWriter {
    /// Leaves out the member of this name.
    pub(in crate::parser) fn ignore(&mut self, name: &str) {
        self.ignored.push(name.to_owned());
    }

    /// Checks whether the string that was written last has no characters.
    pub(in crate::parser) fn string_is_empty(&self) -> bool {
        self.string_is_empty
    }

    /// Begins a member whose value is a string that arrives in pieces.
    pub(in crate::parser) fn open_string(&mut self, name: &str, out: &mut Output<'_>) {
        if self.begin(name, out) {
            out.arguments("\"");
        }
    }

    pub(in crate::parser) fn piece(&mut self, text: &str, out: &mut Output<'_>) {
        if !self.muted && !text.is_empty() {
            self.string_is_empty = false;
            let quoted = escaped(text);
            out.arguments(quoted.get(1..quoted.len() - 1).unwrap_or_default());
        }
    }

    pub(in crate::parser) fn close_string(&self, out: &mut Output<'_>) {
        if !self.muted {
            out.arguments("\"");
        }
    }

    /// Begins a member whose value is JSON that arrives in pieces.
    pub(in crate::parser) fn open_json(&mut self, name: &str, out: &mut Output<'_>) {
        self.begin(name, out);
    }

    pub(in crate::parser) fn json_piece(&self, json: &str, out: &mut Output<'_>) {
        if !self.muted {
            out.arguments(json);
        }
    }

    /// Writes a whole member.
    pub(in crate::parser) fn member(&mut self, name: &str, value: &Value, out: &mut Output<'_>) {
        if self.begin(name, out) {
            out.arguments(&value.to_string());
        }
    }

    pub(in crate::parser) fn end(&self, out: &mut Output<'_>) {
        out.arguments(if self.names.is_empty() { "{}" } else { "}" });
    }

    fn begin(&mut self, name: &str, out: &mut Output<'_>) -> bool {
        self.string_is_empty = true;
        self.muted = self.names.contains(name) || self.ignored.iter().any(|ignored| ignored == name);
        if self.muted {
            return false;
        }
        out.arguments(if self.names.is_empty() { "{" } else { "," });
        out.arguments(&escaped(name));
        out.arguments(":");
        self.names.insert(name.to_owned());
        true
    }
}

/// Returns the text as a JSON string.
fn escaped(text: &str) -> String {
    Value::from(text).to_string()
}
