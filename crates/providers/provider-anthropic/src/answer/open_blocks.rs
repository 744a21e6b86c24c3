//! The content blocks of an answer that have begun and not ended.

use advisor_core::{Opaque, Text};
use serde_json::{Map, Value};

/// The most blocks that may be open at once. Anthropic has one; a server in front of several models may have more.
const MOST_OPEN: usize = 64;

/// A content block that has begun.
pub(super) struct OpenBlock {
    /// The server's number of the block.
    pub(super) number: i64,
    pub(super) content: Content,
}

/// The content of a block that has begun, as far as it is not passed on.
pub(super) enum Content {
    /// Text or thinking, of which nothing is kept.
    Streamed,
    /// A call of a tool. Nearly every server sends its input in pieces; an input in the start, in JSON, counts only if no
    /// piece follows (Q23).
    Call { input: Option<String> },
    /// A block that only the server understands, and that goes back to it as a whole: a call or result of a tool that the
    /// server runs, encrypted thinking, or a kind newer than this crate. `input` is that of a tool, in JSON.
    Kept { fields: Map<String, Value>, input: String },
}

impl Content {
    /// Adds a delta to a kept block: its texts extend the texts of the same name, and its citation extends their list. Its
    /// other fields replace those of the same name.
    pub(super) fn extend(&mut self, delta: Map<String, Value>) {
        let Self::Kept { fields, input } = self else { return };
        for (key, value) in delta {
            match (key.as_str(), fields.get_mut(&key), value) {
                ("type", ..) | (_, _, Value::Null) => {}
                ("partial_json", _, Value::String(piece)) => input.push_str(&piece),
                ("citation", _, citation) => match fields.get_mut("citations") {
                    Some(Value::Array(citations)) => citations.push(citation),
                    _ => _ = fields.insert("citations".to_owned(), Value::Array(vec![citation])),
                },
                (_, Some(Value::String(text)), Value::String(piece)) => text.push_str(&piece),
                (_, _, value) => _ = fields.insert(key, value),
            }
        }
    }

    /// Checks whether something of it is kept until the end of its block.
    fn is_kept(&self) -> bool {
        matches!(self, Self::Kept { .. } | Self::Call { input: Some(_) })
    }
}

/// Returns a kept block as a whole. An input that is no JSON, because the answer was cut in it, stays a text.
pub(super) fn opaque(mut fields: Map<String, Value>, input: String, format: &Text) -> Opaque {
    if !input.is_empty() {
        let input = serde_json::from_str(&input).unwrap_or(Value::String(input));
        fields.insert("input".to_owned(), input);
    }
    let name = fields.get("type").and_then(Value::as_str).unwrap_or("unknown").to_owned();
    Opaque::new(format.clone(), name, Value::Object(fields))
}

/// The blocks that have begun and not ended, in the order of their beginnings.
#[derive(Default)]
pub(super) struct OpenBlocks {
    blocks: Vec<OpenBlock>,
    /// The number after that of the last block.
    next: i64,
    /// The bytes of the events of which something is kept.
    kept: usize,
}

impl OpenBlocks {
    /// Returns the number of a block that begins, and the block that it replaces.
    ///
    /// That is an open one of the same number, or the oldest one if too many are open.
    pub(super) fn begin(&mut self, number: Option<i64>) -> (i64, Option<OpenBlock>) {
        let number = number.unwrap_or(self.next);
        self.next = number.saturating_add(1);
        let same = self.blocks.iter().position(|block| block.number == number);
        let replaced = same.or((self.blocks.len() >= MOST_OPEN).then_some(0));
        (number, replaced.map(|at| self.blocks.remove(at)))
    }

    /// Adds a block. `bytes` are those of its event.
    pub(super) fn push(&mut self, block: OpenBlock, bytes: usize) {
        if block.content.is_kept() {
            self.note_kept(bytes);
        }
        self.blocks.push(block);
    }

    /// Returns the block that an event of this number belongs to: the open one of this number, or else the last
    /// open one (Q56).
    pub(super) fn find(&mut self, number: Option<i64>) -> Option<&mut OpenBlock> {
        let at = self.position(number)?;
        self.blocks.get_mut(at)
    }

    /// Removes the block that an event of this number belongs to.
    pub(super) fn end(&mut self, number: Option<i64>) -> Option<OpenBlock> {
        let at = self.position(number)?;
        let block = self.blocks.remove(at);
        if !self.blocks.iter().any(|block| block.content.is_kept()) {
            self.kept = 0;
        }
        Some(block)
    }

    /// Removes all blocks.
    pub(super) fn end_all(&mut self) -> Vec<OpenBlock> {
        self.kept = 0;
        std::mem::take(&mut self.blocks)
    }

    /// Notes the bytes of an event of which something is kept.
    pub(super) fn note_kept(&mut self, bytes: usize) {
        self.kept = self.kept.saturating_add(bytes);
    }

    /// Returns the bytes of the events of which something is kept, at most.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    fn position(&self, number: Option<i64>) -> Option<usize> {
        let named = self.blocks.iter().position(|block| Some(block.number) == number);
        named.or_else(|| self.blocks.len().checked_sub(1))
    }
}
