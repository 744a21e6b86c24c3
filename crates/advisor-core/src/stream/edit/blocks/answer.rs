//! Part of `EditedBlocks`: the choices of an answer as emitted.

use message_aggregator::{
    Block, BlockContent, BlockId, ChatResponse, Choice, FinishReason, Message, ToolCall,
};

use super::EditedBlocks;

/// The answer as emitted.
impl EditedBlocks {
    /// Returns the output of a round as an answer that ends for this reason, if there is any.
    pub(in crate::stream::edit) fn answer(&self, round: u32, reason: &FinishReason) -> Option<ChatResponse> {
        self.shown.response(round, reason)
    }

    /// Returns the choice of a round as emitted, or `None` if it is unchanged.
    pub(in crate::stream::edit) fn edited_choice(&self, choice: &Choice, round: u32) -> Option<Choice> {
        let blocks = || choice.block_ids.iter().copied().zip(choice.message.blocks());
        let is_left_out = |id: BlockId| self.inside.contains_key(&id) && !self.shown.has_opened(id);
        let added = self.added(choice, round);
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
        let (ids, blocks) = edited.into_iter().unzip();
        Some(Choice::new(choice.number, Message::assistant_blocks(blocks), ids, choice.finish.clone()))
    }

    /// Returns the emitted blocks of a choice that the inner answer does not have.
    fn added(&self, choice: &Choice, round: u32) -> Vec<(BlockId, Block)> {
        let is_added = |(id, of): &(&BlockId, &u32)| {
            id.round == round && **of == choice.number && !choice.block_ids.contains(id)
        };
        let added = self.own.iter().filter(is_added);
        added.filter_map(|(id, _)| Some((*id, self.shown.block(*id)?))).collect()
    }

    /// Returns the block as emitted, or the original if it is unchanged.
    pub(super) fn edited_block(&self, id: BlockId, original: &Block) -> Block {
        let Some(shown) = self.shown.block(id) else {
            return original.clone();
        };
        if self.own.contains_key(&id) {
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
