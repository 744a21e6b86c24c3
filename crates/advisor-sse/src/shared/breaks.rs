//! Breaks between the texts of a turn, for protocols whose answer is one text.

use advisor_core::{BlockId, BlockKind};

/// Tells where an empty line separates the texts of a turn: between rounds, and around media, which are texts there.
#[derive(Debug, Default)]
pub(crate) struct Breaks {
    last: Option<(BlockId, BlockKind)>,
}

impl Breaks {
    /// Takes note of a piece of a block. Returns whether an empty line precedes it.
    pub(crate) fn precede(&mut self, block: BlockId, kind: BlockKind) -> bool {
        let before = self.last.replace((block, kind));
        before.is_some_and(|(last, last_kind)| {
            let has_media = [kind, last_kind].contains(&BlockKind::Media);
            last.round != block.round || has_media && last != block
        })
    }

    /// Takes note of a piece of reasoning. Returns whether an empty line precedes it: the parts of a summary are blocks.
    pub(crate) fn precede_reasoning(&mut self, block: BlockId) -> bool {
        let before = self.last.replace((block, BlockKind::Reasoning));
        before.is_some_and(|(last, _)| last != block)
    }

    /// Checks whether there was a text.
    pub(crate) fn has_text(&self) -> bool {
        self.last.is_some()
    }

    /// Forgets the texts, since what follows is separated already.
    pub(crate) fn reset(&mut self) {
        self.last = None;
    }
}
