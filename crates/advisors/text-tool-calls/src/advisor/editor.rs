//! `TextCallEditor`: replaces calls in text blocks by separate blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use advisor_core::{
    Block, BlockContent, BlockDelta, BlockHead, BlockId, BlockKind, CallHead, ChatResponse, Chunk,
    ChunkEditor, EditedChunks, Error, ErrorKind, ProviderData, ToolCall, Turn,
};

use super::history::data_format;
use super::leaks::report_leak;
use crate::format::TextFormat;
use crate::parser::TextCallParser;
use crate::parser::event::{OpenedCall, ParserEvent, ParserLimits};
use crate::tools::TextTools;

/// Replaces calls in the text of an answer by blocks of calls.
pub(super) struct TextCallEditor {
    pub(super) formats: Vec<TextFormat>,
    pub(super) limits: ParserLimits,
    pub(super) tools: TextTools,
    /// The turn that records a call that was not read. `None`: no turn records it.
    pub(super) reports_to: Option<Arc<Turn>>,
    /// The open text blocks of the model.
    pub(super) open: BTreeMap<BlockId, OpenText>,
    /// The number of calls that the texts of the answer may still have, over all its blocks.
    pub(super) calls_left: usize,
}

/// A text block of the model, and the block that is emitted at the moment.
pub(super) struct OpenText {
    block: BlockId,
    head: BlockHead,
    parser: TextCallParser,
    /// Whether the model's own block was emitted.
    is_used: bool,
    current: Current,
    /// The buffer of the events of a piece, empty between pieces.
    events: Vec<ParserEvent>,
}

enum Current {
    None,
    Text(BlockId),
    Call(OpenCall),
}

/// A call that is emitted, and its text as the model wrote it.
struct OpenCall {
    block: BlockId,
    call: ToolCall,
    raw: String,
    format: TextFormat,
}

impl ChunkEditor for TextCallEditor {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        match chunk {
            Chunk::Opened { block, head } if head.kind == BlockKind::Text => {
                let open = OpenText {
                    block,
                    head,
                    parser: TextCallParser::new(self.formats.clone(), &self.tools, self.limits),
                    is_used: false,
                    current: Current::None,
                    events: Vec::new(),
                };
                self.open.insert(block, open);
            }
            Chunk::Delta { block, delta: BlockDelta::Text(text) } if self.open.contains_key(&block) => {
                if let Some(open) = self.open.get_mut(&block) {
                    open.read(Some(&text), &mut self.calls_left, out);
                }
            }
            Chunk::Closed { block, content } if self.open.contains_key(&block) => {
                if let Some(mut open) = self.open.remove(&block) {
                    open.read(None, &mut self.calls_left, out);
                    open.close(Some(content), out);
                }
            }
            Chunk::AttemptRestarted { round } => {
                self.open.retain(|block, _| block.round != round);
                self.calls_left = self.limits.calls;
                out.push(Chunk::AttemptRestarted { round });
            }
            chunk => out.push(chunk),
        }
    }

    fn end(&mut self, response: &ChatResponse, out: &mut EditedChunks<'_>) {
        for (_, mut open) in std::mem::take(&mut self.open) {
            open.read(None, &mut self.calls_left, out);
            open.close(None, out);
        }
        if let Some(turn) = &self.reports_to {
            report_leak(response, &self.tools, turn);
        }
    }
}

impl OpenText {
    /// Reads a piece of the text, or its end. Fails the stream if the text exceeds a bound.
    fn read(&mut self, piece: Option<&str>, calls_left: &mut usize, out: &mut EditedChunks<'_>) {
        let mut events = std::mem::take(&mut self.events);
        let result = self.parser.read(piece, calls_left, &mut events);
        self.take_events(events.drain(..), out);
        self.events = events;
        if let Err(error) = result {
            out.fail(Error::new(ErrorKind::TooLarge, error.to_string()));
        }
    }

    /// Closes what is open. If nothing was changed, the block closes as the model closed it, with its provider data.
    fn close(&mut self, content: Option<Block>, out: &mut EditedChunks<'_>) {
        match (&self.current, content) {
            (Current::Text(block), Some(content)) if *block == self.block => {
                out.push(Chunk::Closed { block: *block, content });
            }
            _ => self.close_current(out),
        }
    }

    fn take_events(&mut self, events: impl Iterator<Item = ParserEvent>, out: &mut EditedChunks<'_>) {
        for event in events {
            match (event, &mut self.current) {
                (ParserEvent::Text(text), Current::Text(block)) => {
                    out.push(Chunk::Delta { block: *block, delta: BlockDelta::Text(text.into()) });
                }
                (ParserEvent::Text(text), _) => {
                    let block = self.open_text(out);
                    out.push(Chunk::Delta { block, delta: BlockDelta::Text(text.into()) });
                }
                (ParserEvent::Opened(opened), _) => self.open_call(opened, out),
                (ParserEvent::Markup(text) | ParserEvent::Body(text), Current::Call(call)) => {
                    call.raw.push_str(&text);
                }
                (ParserEvent::Arguments(text), Current::Call(call)) => {
                    call.call.arguments.push_str(&text);
                    out.push(Chunk::Delta { block: call.block, delta: BlockDelta::Arguments(text.into()) });
                }
                (ParserEvent::Closed { complete }, Current::Call(call)) => {
                    call.call.complete = complete;
                    self.close_current(out);
                }
                _ => {}
            }
        }
    }

    /// Opens a text block: the model's own if the editor has opened no block before, otherwise a new one.
    fn open_text(&mut self, out: &mut EditedChunks<'_>) -> BlockId {
        if self.is_used {
            return self.open_block(BlockHead::new(BlockKind::Text), Current::Text, out);
        }
        self.is_used = true;
        self.current = Current::Text(self.block);
        out.push(Chunk::Opened { block: self.block, head: self.head.clone() });
        self.block
    }

    fn open_call(&mut self, opened: OpenedCall, out: &mut EditedChunks<'_>) {
        let OpenedCall { name, id, format } = opened;
        let id = id.unwrap_or_default();
        let mut head = BlockHead::new(BlockKind::ToolCall);
        head.call = Some(Box::new(CallHead { name: name.clone(), call_id: id.clone() }));
        let mut call = ToolCall::new(id, name, String::new());
        call.complete = false;
        self.open_block(
            head,
            |block| Current::Call(OpenCall { block, call, raw: String::new(), format }),
            out,
        );
    }

    /// Opens a block of the editor. It comes after the model's own, which must not open any more.
    fn open_block(
        &mut self,
        head: BlockHead,
        current: impl FnOnce(BlockId) -> Current,
        out: &mut EditedChunks<'_>,
    ) -> BlockId {
        self.close_current(out);
        self.is_used = true;
        let block = out.open(self.block, head);
        self.current = current(block);
        block
    }

    fn close_current(&mut self, out: &mut EditedChunks<'_>) {
        match std::mem::replace(&mut self.current, Current::None) {
            Current::None => {}
            Current::Text(block) => out.close(block),
            Current::Call(call) => out.push(call.close()),
        }
    }
}

impl OpenCall {
    /// Closes the block. The text of a call without its closing marker is not kept: history writes the call again,
    /// so that its end is clear to the model.
    fn close(self) -> Chunk {
        let raw = self.call.complete.then(|| ProviderData::new(data_format(self.format), self.raw.into()));
        let content = Block::with_data(BlockContent::ToolCall(self.call), raw.into_iter().collect());
        Chunk::Closed { block: self.block, content }
    }
}
