//! A content block between its start and its end.

use advisor_core::{Opaque, Text};
use serde_json::{Map, Value};

/// A content block that has begun.
pub(super) struct OpenBlock {
    /// The server's number of the block.
    pub(super) number: i64,
    pub(super) content: OpenContent,
}

/// The content of a block that has begun, as far as it is not passed on.
pub(super) enum OpenContent {
    /// Text or thinking, of which nothing is kept.
    Streamed,
    /// A call of a tool. Nearly every server sends its input in pieces; an input in the start counts only if no
    /// piece follows (Q23).
    Call { input: Option<Value> },
    /// Any other block, which goes back to the server as a whole.
    Kept(KeptBlock),
}

/// A block that only the server understands.
///
/// It is a call or result of a tool that the server runs, encrypted thinking, or of a kind newer than this crate.
pub(super) struct KeptBlock {
    fields: Map<String, Value>,
    /// The input of a tool that the server runs, in JSON.
    input: String,
}

impl KeptBlock {
    pub(super) fn new(fields: Map<String, Value>) -> Self {
        Self { fields, input: String::new() }
    }

    /// Adds a delta: its texts extend the texts of the same name, and its citation extends their list. Its other
    /// fields replace those of the same name.
    pub(super) fn extend(&mut self, delta: Map<String, Value>) {
        for (key, value) in delta {
            match (key.as_str(), self.fields.get_mut(&key), value) {
                ("type", ..) | (_, _, Value::Null) => {}
                ("partial_json", _, Value::String(piece)) => self.input.push_str(&piece),
                ("citation", _, citation) => self.push_citation(citation),
                (_, Some(Value::String(text)), Value::String(piece)) => text.push_str(&piece),
                (_, _, value) => {
                    self.fields.insert(key, value);
                }
            }
        }
    }

    fn push_citation(&mut self, citation: Value) {
        match self.fields.get_mut("citations") {
            Some(Value::Array(citations)) => citations.push(citation),
            _ => {
                self.fields.insert("citations".to_owned(), Value::Array(vec![citation]));
            }
        }
    }

    /// Returns the whole block. An input that is no JSON, because the answer was cut in it, stays a text.
    pub(super) fn into_opaque(mut self, format: &Text) -> Opaque {
        if !self.input.is_empty() {
            let input = serde_json::from_str(&self.input).unwrap_or(Value::String(self.input));
            self.fields.insert("input".to_owned(), input);
        }
        let name = self.fields.get("type").and_then(Value::as_str).unwrap_or("unknown").to_owned();
        Opaque::new(format.clone(), name, Value::Object(self.fields))
    }
}

impl OpenBlock {
    /// Checks whether something of its content is kept until its end.
    pub(super) fn keeps(&self) -> bool {
        matches!(self.content, OpenContent::Kept(_) | OpenContent::Call { input: Some(_) })
    }

    /// Checks whether it is passed on as a whole at its end.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.content, OpenContent::Kept(_))
    }
}
