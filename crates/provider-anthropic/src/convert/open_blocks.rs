//! The content blocks of an answer that have begun and not ended.

use super::open_block::OpenBlock;

/// The most blocks that may be open at once. Anthropic has one; a server in front of several models may have more.
const MOST_OPEN: usize = 64;

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

    pub(super) fn push(&mut self, block: OpenBlock) {
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
        if !self.blocks.iter().any(OpenBlock::keeps) {
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
