//! `OpenCall`: a call that is emitted, and its text as the model wrote it.

use advisor_core::{Block, BlockContent, BlockId, Chunk, ProviderData, ToolCall};

use super::history::data_format;
use crate::parser::event::{CallEnd, OpenedCall};
use crate::parser::format::TextFormat;

/// A call that is emitted.
pub(super) struct OpenCall {
    block: BlockId,
    call: ToolCall,
    /// The call as the model wrote it.
    raw: String,
    format: TextFormat,
    end: CallEnd,
}

impl OpenCall {
    pub(super) fn new(block: BlockId, opened: &OpenedCall) -> Self {
        let id = opened.id.clone().unwrap_or_default();
        let call = ToolCall::new(id, opened.name.clone(), String::new());
        Self { block, call, raw: String::new(), format: opened.format, end: CallEnd::Cut }
    }

    /// Appends text of the call as the model wrote it.
    pub(super) fn add_raw(&mut self, text: &str) {
        self.raw.push_str(text);
    }

    /// Appends JSON of the arguments. Returns the block of the call.
    pub(super) fn add_arguments(&mut self, json: &str) -> BlockId {
        self.call.arguments.push_str(json);
        self.block
    }

    /// Sets how the call ended. Without this, it was cut off.
    pub(super) fn end(&mut self, end: CallEnd) {
        self.call.complete = end.is_complete();
        self.end = end;
    }

    /// Closes the block. The text of a call without its closing marker is not kept: history writes the call again,
    /// so that its end is clear to the model.
    pub(super) fn close(self) -> Chunk {
        let data = match self.end {
            CallEnd::Complete => vec![ProviderData::new(data_format(self.format), self.raw.into())],
            CallEnd::AssumedComplete | CallEnd::Cut => Vec::new(),
        };
        let content = Block::with_data(BlockContent::ToolCall(self.call), data);
        Chunk::Closed { block: self.block, content }
    }
}
