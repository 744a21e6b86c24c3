use std::collections::{BTreeMap, VecDeque};

use message_aggregator::{
    Block, BlockContent, BlockDelta, BlockId, BlockKind, Choice, Chunk, ChunkFold, Message, ToolCall,
};

/// The blocks of a stream on both sides of an editor, until their round ends.
#[derive(Default)]
pub(super) struct EditedBlocks {
    /// Blocks that opened in the inner stream, with their content once closed.
    inside: BTreeMap<BlockId, Option<Block>>,
    /// The emitted blocks.
    shown: ChunkFold,
    /// Blocks that are open in the output, with the kind they opened as.
    open: BTreeMap<BlockId, BlockKind>,
    /// The round whose completion is passing the editor.
    completing: Option<u32>,
}

impl EditedBlocks {
    /// Notes a chunk before it goes to the editor.
    pub(super) fn arrive(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Opened { block, .. } => {
                self.inside.entry(*block).or_default();
            }
            Chunk::Closed { block, content } => {
                self.inside.entry(*block).and_modify(|closed| *closed = Some(content.clone()));
            }
            Chunk::AttemptRestarted { round } => self.inside.retain(|block, _| block.round != *round),
            _ => {}
        }
    }

    /// Emits a chunk of the editor, if it is valid at this point.
    pub(super) fn let_out(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) {
        // When a later round begins, the earlier ones have ended, even without a completion.
        self.close_until(chunk.round().saturating_sub(1), out);
        let placed = match chunk {
            Chunk::Closed { block, content } => self.close(block, Some(content)),
            chunk => self.has_place(&chunk).then_some(chunk),
        };
        if let Some(chunk) = placed {
            self.shown.push(&chunk);
            out.push_back(chunk);
        }
    }

    /// Closes blocks that are still open in the output, up to this round.
    pub(super) fn close_until(&mut self, round: u32, out: &mut VecDeque<Chunk>) {
        while let Some(block) = self.open.keys().next().copied().filter(|block| block.round <= round)
            && let Some(closed) = self.close(block, None)
        {
            self.shown.push(&closed);
            out.push_back(closed);
        }
    }

    fn has_place(&mut self, chunk: &Chunk) -> bool {
        match chunk {
            Chunk::Opened { block, head } => {
                let first = self.inside.contains_key(block) && !self.shown.has_opened(*block);
                first && self.open.insert(*block, head.kind).is_none()
            }
            Chunk::Delta { block, delta } => {
                self.open.get(block).is_some_and(|kind| *kind == delta.kind()) && self.extends(*block, delta)
            }
            Chunk::AttemptRestarted { round } => {
                self.open.retain(|block, _| block.round != *round);
                true
            }
            // Rounds and answers end only where the inner stream ends them: completion work may still have to run.
            Chunk::RoundCompleted(response) => self.completing.take() == Some(response.round()),
            Chunk::Completed(_) => false,
            _ => true,
        }
    }

    /// Checks whether the block can take this delta: a block of a single piece takes one only.
    fn extends(&self, block: BlockId, delta: &BlockDelta) -> bool {
        match delta {
            BlockDelta::Text(_)
            | BlockDelta::Reasoning(_)
            | BlockDelta::Refusal(_)
            | BlockDelta::Arguments(_) => true,
            _ => self.shown.block(block).is_some_and(|shown| shown.kind() != delta.kind()),
        }
    }

    /// Allows the completion of this round to pass the editor, once.
    pub(super) fn complete(&mut self, round: u32) {
        self.completing = Some(round);
    }

    /// Returns the closing chunk of a block that is open in the output; `said` is the content that the editor
    /// closed it with.
    fn close(&mut self, block: BlockId, said: Option<Block>) -> Option<Chunk> {
        let shown = self.shown.block(block).filter(|_| self.open.contains_key(&block))?;
        let inside = self.inside.get(&block).cloned().flatten();
        let content = self.edited_block(block, &inside.or(said).unwrap_or(shown));
        self.open.remove(&block);
        Some(Chunk::Closed { block, content })
    }

    /// Forgets an ended round, of which nothing more can be emitted.
    pub(super) fn forget(&mut self, round: u32) {
        self.inside.retain(|block, _| block.round != round);
        // A fold forgets an ended round in the same way as a restarted one.
        self.shown.push(&Chunk::AttemptRestarted { round });
    }

    /// Returns the choice as emitted, or `None` if it is unchanged.
    pub(super) fn edited_choice(&self, choice: &Choice) -> Option<Choice> {
        let blocks = || choice.block_ids.iter().copied().zip(choice.message.blocks());
        let is_left_out = |id: BlockId| self.inside.contains_key(&id) && !self.shown.has_opened(id);
        if blocks().all(|(id, block)| !is_left_out(id) && self.edited_block(id, block) == *block) {
            return None;
        }
        let (ids, edited) = blocks()
            .filter(|(id, _)| !is_left_out(*id))
            .map(|(id, block)| (id, self.edited_block(id, block)))
            .unzip();
        Some(Choice::new(choice.number, Message::assistant_blocks(edited), ids, choice.finish.clone()))
    }

    /// Returns the block as emitted, or the original if it is unchanged.
    fn edited_block(&self, id: BlockId, original: &Block) -> Block {
        let Some(shown) = self.shown.block(id) else {
            return original.clone();
        };
        let (BlockContent::ToolCall(shown), Some(call)) = (shown.content(), original.as_tool_call()) else {
            let same = shown.content() == original.content();
            return if same { original.clone() } else { Block::new(shown.content().clone()) };
        };
        // A call that the editor closed early is incomplete; for an open one the original's state applies.
        let complete = if self.open.contains_key(&id) { call.complete } else { shown.complete };
        let mut edited = ToolCall::new(call.id.clone(), shown.name.clone(), shown.arguments.clone());
        edited.complete = complete;
        if edited == *call { original.clone() } else { Block::from(edited) }
    }
}
