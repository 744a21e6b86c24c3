//! The content blocks of a message in JSON, separated by commas.

use bytes::Bytes;
use serde::Serialize;

/// The content blocks of one message, or of a part of it. Empty if there is nothing to send.
#[derive(Debug, Default)]
pub(super) struct Blocks(Vec<u8>);

impl Blocks {
    /// Appends a block.
    pub(super) fn push(&mut self, block: &impl Serialize) -> serde_json::Result<()> {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        serde_json::to_writer(&mut self.0, block)
    }

    /// Appends blocks.
    pub(super) fn extend(&mut self, blocks: &[impl Serialize]) -> serde_json::Result<()> {
        blocks.iter().try_for_each(|block| self.push(block))
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.0.into()
    }
}
