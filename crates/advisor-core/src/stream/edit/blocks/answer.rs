//! Part of `EditedBlocks`: the answer as emitted.

use message_aggregator::{Block, BlockContent, BlockId, ChatResponse, FinishReason, ToolCall};

use super::EditedBlocks;

/// The answer as emitted.
impl EditedBlocks {
    /// Returns the output of a round as an answer that ends for this reason, if there is any.
    pub(in crate::stream::edit) fn answer(&self, round: u32, reason: &FinishReason) -> Option<ChatResponse> {
        self.shown.response(round, reason)
    }

    /// Returns the response as emitted, or `None` if its blocks are unchanged.
    pub(in crate::stream::edit) fn edited_answer(&self, response: &ChatResponse) -> Option<ChatResponse> {
        let blocks = || response.blocks();
        let is_left_out = |id: BlockId| self.inside.contains_key(&id) && !self.shown.has_opened(id);
        let added = self.added(response);
        if added.is_empty()
            && blocks().all(|(id, block)| !is_left_out(id) && self.edited_block(id, block) == *block)
        {
            return None;
        }
        let kept = blocks().filter(|(id, _)| !is_left_out(*id));
        let mut edited: Vec<_> = kept.map(|(id, block)| (id, self.edited_block(id, block))).collect();
        if !added.is_empty() {
            edited.extend(added);
            edited.sort_by_key(|(id, _)| *id);
        }
        Some(response.clone().with_blocks(edited))
    }

    /// Returns the emitted blocks that the inner answer does not have.
    fn added(&self, response: &ChatResponse) -> Vec<(BlockId, Block)> {
        let is_added =
            |id: &&BlockId| id.round == response.round() && response.blocks().all(|(known, _)| known != **id);
        let added = self.own.iter().filter(is_added);
        added.filter_map(|id| Some((*id, self.shown.block(*id)?))).collect()
    }

    /// Returns the block as emitted, or the original if it is unchanged.
    pub(super) fn edited_block(&self, id: BlockId, original: &Block) -> Block {
        let Some(shown) = self.shown.block(id) else {
            return original.clone();
        };
        if self.own.contains(&id) {
            return shown;
        }
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
