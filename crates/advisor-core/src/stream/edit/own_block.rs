//! `own_block` and `completed`: the content with which a block of an editor's own closes.

use message_aggregator::{Block, BlockContent, ToolCall};

/// Returns a block of the editor's own, given the content that it was closed with. Its provider data belongs to
/// that content only.
pub(super) fn own_block(shown: Block, said: Option<Block>) -> Block {
    let Some(said) = said else { return shown };
    let content = match (shown.content(), said.as_tool_call()) {
        (BlockContent::ToolCall(shown), Some(said)) => {
            let mut call = ToolCall::new(shown.id.clone(), shown.name.clone(), shown.arguments.clone());
            call.complete = said.complete;
            BlockContent::ToolCall(call)
        }
        (content, _) => content.clone(),
    };
    let is_same = match (&content, said.as_tool_call()) {
        (BlockContent::ToolCall(call), Some(said)) => {
            (&call.name, &call.arguments) == (&said.name, &said.arguments)
        }
        (content, _) => content == said.content(),
    };
    let data = if is_same { said.provider_data().to_vec() } else { Vec::new() };
    Block::with_data(content, data)
}

/// Returns the block with its call complete, if it is one.
pub(super) fn completed(block: Block) -> Block {
    match block.as_tool_call() {
        Some(call) => ToolCall::new(call.id.clone(), call.name.clone(), call.arguments.clone()).into(),
        None => block,
    }
}
