//! `ChunkFold`: rebuilds blocks from chunks, for user interfaces and for tests that compare them with responses.

use std::collections::BTreeMap;

use crate::{
    Block, BlockContent, BlockDelta, BlockId, BlockKind, ChatResponse, Chunk, FinishReason, ToolCall,
};

/// Rebuilds blocks from the deltas of a stream, without reading finished blocks or responses.
///
/// User interfaces that only see deltas do the same, and tests compare its result with responses. A restart of a
/// round discards its blocks.
#[derive(Debug, Clone, Default)]
pub struct ChunkFold {
    blocks: BTreeMap<BlockId, Folded>,
}

#[derive(Debug, Clone)]
struct Folded {
    content: BlockContent,
    closed: Option<Block>,
}

impl ChunkFold {
    /// Adds the next chunk. Deltas of a block that never opened are ignored.
    pub fn push(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Opened { block, head } => {
                let content = match (head.kind, &head.call) {
                    (BlockKind::ToolCall, Some(call)) => BlockContent::ToolCall(ToolCall {
                        complete: false,
                        ..ToolCall::new(&call.call_id, &call.name, "")
                    }),
                    (kind, _) => BlockContent::from_text(kind, String::new()),
                };
                self.blocks.insert(*block, Folded { content, closed: None });
            }
            Chunk::Delta { block, delta } => {
                if let Some(folded) = self.blocks.get_mut(block) {
                    folded.extend(delta);
                }
            }
            Chunk::Closed { block, content } => {
                if let Some(folded) = self.blocks.get_mut(block) {
                    folded.closed = Some(content.clone());
                }
            }
            Chunk::AttemptRestarted { round } => self.blocks.retain(|block, _| block.round != *round),
            _ => {}
        }
    }

    /// Returns the blocks of a round as built from their deltas, in order.
    ///
    /// Whether a call is complete and the provider data are taken from the closed block. Data that arrives later is
    /// only in the response.
    #[must_use]
    pub fn blocks(&self, round: u32) -> Vec<(BlockId, Block)> {
        self.of_round(round).map(|(id, folded)| (*id, folded.to_block())).collect()
    }

    /// Returns the response of a round that ends here for this reason, if it has a block.
    #[must_use]
    pub fn response(&self, round: u32, reason: &FinishReason) -> Option<ChatResponse> {
        let blocks = self.blocks(round);
        (!blocks.is_empty()).then(|| ChatResponse::from_blocks(round, blocks, reason.clone()))
    }

    /// Returns one block as built from its deltas.
    #[must_use]
    pub fn block(&self, id: BlockId) -> Option<Block> {
        self.blocks.get(&id).map(Folded::to_block)
    }

    /// Iterates over the open blocks of any round, as built from their deltas so far.
    ///
    /// Open calls are incomplete.
    fn open_blocks(&self) -> impl Iterator<Item = (BlockId, Block)> {
        let open = self.blocks.iter().filter(|(_, folded)| folded.closed.is_none());
        open.map(|(id, folded)| (*id, folded.to_block()))
    }

    /// Closes the open blocks, for an answer that ends here. Returns the closing chunks.
    ///
    /// Open calls stay incomplete.
    pub fn close_open(&mut self) -> Vec<Chunk> {
        let open: Vec<_> = self.open_blocks().collect();
        let closed: Vec<_> =
            open.into_iter().map(|(block, content)| Chunk::Closed { block, content }).collect();
        closed.iter().for_each(|chunk| self.push(chunk));
        closed
    }

    /// Checks whether the block has opened.
    #[must_use]
    pub fn has_opened(&self, id: BlockId) -> bool {
        self.blocks.contains_key(&id)
    }

    /// Returns the emitted text of a round, joined over its text blocks and refusals.
    #[must_use]
    pub fn text(&self, round: u32) -> String {
        self.of_round(round).filter_map(|(_, folded)| folded.content.shown_text()).collect()
    }

    fn of_round(&self, round: u32) -> impl Iterator<Item = (&BlockId, &Folded)> {
        self.blocks.range(BlockId::new(round, 0)..=BlockId::last_of(round))
    }
}

impl Folded {
    fn extend(&mut self, delta: &BlockDelta) {
        match delta {
            BlockDelta::Media(media) => self.content = BlockContent::Media((**media).clone()),
            BlockDelta::Citation(citation) => self.content = BlockContent::Citation((**citation).clone()),
            BlockDelta::Opaque(opaque) => self.content = BlockContent::Opaque((**opaque).clone()),
            BlockDelta::Text(text)
            | BlockDelta::Reasoning(text)
            | BlockDelta::Refusal(text)
            | BlockDelta::Arguments(text) => {
                self.content.text_mut(delta.kind()).into_iter().for_each(|all| all.push_str(text));
            }
        }
    }

    fn to_block(&self) -> Block {
        let mut content = self.content.clone();
        let closed = self.closed.as_ref();
        if let (BlockContent::ToolCall(call), Some(whole)) =
            (&mut content, closed.and_then(Block::as_tool_call))
        {
            call.complete = whole.complete;
        }
        Block::with_data(content, closed.map(|block| block.provider_data().to_vec()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Delta, MessageAggregator, ToolCallDelta};

    #[test]
    fn open_blocks_are_listed_with_incomplete_calls() {
        let mut aggregator = MessageAggregator::new(1);
        let mut chunks = std::collections::VecDeque::new();
        let nameless = ToolCallDelta { call_id: None, ..ToolCallDelta::start(0, "", "look") };
        for delta in [Delta::text("Let me look."), Delta::tool_call(nameless.with_arguments("{\"a\""))] {
            aggregator.push(delta, &mut chunks).unwrap();
        }
        let mut fold = ChunkFold::default();
        chunks.iter().for_each(|chunk| fold.push(chunk));
        let open: Vec<_> = fold.open_blocks().collect();
        let mut call = ToolCall::new("call_1_1", "look", "{\"a\"");
        call.complete = false;
        assert_eq!(open, [(BlockId::new(1, 1), Block::from(call))]);
    }

    #[test]
    fn open_blocks_close_once_as_they_are() {
        let mut aggregator = MessageAggregator::new(1);
        let mut chunks = std::collections::VecDeque::new();
        for delta in [Delta::text("Hm."), Delta::tool_call(ToolCallDelta::start(0, "c1", "look"))] {
            aggregator.push(delta, &mut chunks).unwrap();
        }
        let mut fold = ChunkFold::default();
        chunks.iter().for_each(|chunk| fold.push(chunk));
        let open: Vec<_> = fold.open_blocks().collect();
        let closed: Vec<_> =
            open.iter().cloned().map(|(block, content)| Chunk::Closed { block, content }).collect();
        assert_eq!((open.len(), fold.close_open()), (1, closed));
        assert_eq!(fold.open_blocks().count(), 0);
        assert_eq!(fold.close_open(), []);
    }
}
