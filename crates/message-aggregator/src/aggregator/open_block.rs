//! `OpenBlock`: one unfinished block; collects its content and emits its opened, delta and closed chunks.

use crate::aggregator::answer_bytes::of_provider_data;
use crate::aggregator::error::{Result, within};
use crate::aggregator::{Answer, Sink};
use crate::{
    Block, BlockContent, BlockDelta, BlockHead, BlockId, BlockKind, CallHead, Chunk, ProviderData, Text,
    ToolCall,
};

/// A block while it streams.
#[derive(Debug)]
pub(crate) struct OpenBlock {
    pub(crate) id: BlockId,
    /// The provider's number of the block, if it numbers blocks.
    pub(crate) key: Option<i64>,
    state: State,
    data: Vec<ProviderData>,
}

#[derive(Debug)]
pub(crate) enum State {
    /// Text that may grow, of a block of this kind.
    Text(BlockKind, String),
    /// The open call at this position among the calls of the answer.
    Call(usize),
    Closed(Block),
}

impl OpenBlock {
    pub(crate) fn new(id: BlockId, key: Option<i64>, state: State) -> Self {
        let data = match &state {
            State::Closed(block) => block.provider_data().to_vec(),
            State::Text(..) | State::Call(_) => Vec::new(),
        };
        Self { id, key, state, data }
    }

    pub(crate) fn kind(&self) -> BlockKind {
        match &self.state {
            State::Text(kind, _) => *kind,
            State::Call(_) => BlockKind::ToolCall,
            State::Closed(block) => block.kind(),
        }
    }

    /// Checks whether it is an open text of this kind and number.
    #[inline]
    pub(crate) fn takes_text(&self, key: Option<i64>, kind: BlockKind) -> bool {
        self.key == key && matches!(self.state, State::Text(open, _) if open == kind)
    }

    pub(crate) fn is_open_text(&self) -> bool {
        matches!(self.state, State::Text(..))
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }

    /// Returns the position of its call, unless the block is closed.
    pub(crate) fn open_call(&self) -> Option<usize> {
        match self.state {
            State::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the text so far that a reader of text alone is shown.
    pub(crate) fn shown_text(&self) -> Option<&str> {
        match &self.state {
            State::Text(BlockKind::Text | BlockKind::Refusal, text) => Some(text),
            State::Text(..) | State::Call(_) => None,
            State::Closed(block) => block.content().shown_text(),
        }
    }

    /// Appends a piece of the text, unless the block is closed. If it exceeds a limit, nothing changes.
    #[inline]
    pub(crate) fn extend(&mut self, piece: &str, answer: &mut Answer) -> Result {
        let State::Text(_, text) = &mut self.state else { return Ok(()) };
        within("bytes in one block", text.len() + piece.len(), answer.settings.limits.block_bytes)?;
        answer.bytes.add(piece.len())?;
        text.push_str(piece);
        Ok(())
    }

    /// Returns the chunk of a piece of text or arguments.
    #[inline]
    pub(crate) fn piece(&self, kind: BlockKind, text: Text) -> Chunk {
        Chunk::Delta { block: self.id, delta: BlockDelta::from_text(kind, text) }
    }

    /// Adds data to be replayed with the block; it may arrive after the block has ended.
    pub(crate) fn push_data(&mut self, data: ProviderData, sink: &mut Sink<'_>) -> Result {
        let limit = sink.answer.settings.limits.provider_data;
        within("pieces of provider data on one block", self.data.len() + 1, limit)?;
        sink.answer.bytes.add(of_provider_data(&data))?;
        self.data.push(data);
        Ok(())
    }

    pub(crate) fn open(&self, call: Option<CallHead>, sink: &mut Sink<'_>) {
        let head = BlockHead { kind: self.kind(), call: call.map(Box::new) };
        sink.chunks.push_back(Chunk::Opened { block: self.id, head });
    }

    #[inline]
    pub(crate) fn show(&self, delta: BlockDelta, sink: &mut Sink<'_>) {
        sink.chunks.push_back(Chunk::Delta { block: self.id, delta });
    }

    /// Emits the content of a block that arrived in one piece.
    pub(crate) fn show_whole(&self, sink: &mut Sink<'_>) {
        if let State::Closed(content) = &self.state {
            BlockDelta::from_content(content.content()).into_iter().for_each(|delta| self.show(delta, sink));
            sink.chunks.push_back(Chunk::Closed { block: self.id, content: content.clone() });
        }
    }

    /// Closes the block, unless it is closed or a call.
    pub(crate) fn close(&mut self, sink: &mut Sink<'_>) {
        if let State::Text(kind, text) = &mut self.state {
            let content = BlockContent::from_text(*kind, std::mem::take(text));
            self.close_with(content, sink);
        }
    }

    pub(crate) fn close_with(&mut self, content: BlockContent, sink: &mut Sink<'_>) {
        let content = Block::with_data(content, self.data.clone());
        self.state = State::Closed(content.clone());
        sink.chunks.push_back(Chunk::Closed { block: self.id, content });
    }

    /// Returns the current block; `call` returns the call at a position while it is open.
    pub(crate) fn to_block(&self, call: impl FnOnce(usize) -> Option<ToolCall>) -> Block {
        let content = match &self.state {
            // Data that arrived after the end is missing on the closing chunk.
            State::Closed(block) if block.provider_data().len() == self.data.len() => return block.clone(),
            State::Closed(block) => block.content().clone(),
            State::Text(kind, text) => BlockContent::from_text(*kind, text.clone()),
            State::Call(at) => match call(*at) {
                Some(call) => BlockContent::ToolCall(call),
                None => BlockContent::Text(String::new()),
            },
        };
        Block::with_data(content, self.data.clone())
    }
}
