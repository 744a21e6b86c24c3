//! `TextCallEditor`: replaces calls and reasoning in text blocks by separate blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use advisor_core::{
    Block, BlockContent, BlockDelta, BlockHead, BlockId, BlockKind, CallHead, ChatResponse, Chunk,
    ChunkEditor, EditedChunks, Error, ErrorKind, ProviderData, ToolCall, Turn,
};

use super::history::data_format;
use super::leaks::report_leak;
use super::thoughts::Thoughts;
use crate::format::TextFormat;
use crate::parser::TextCallParser;
use crate::parser::event::{OpenedCall, ParserError, ParserEvent, ParserLimits};
use crate::thinking::{ThinkingSplitter, ThoughtPiece};
use crate::tools::TextTools;

/// Replaces calls in the text of an answer by blocks of calls, and reasoning in it by blocks of reasoning.
pub(super) struct TextCallEditor {
    pub(super) formats: Vec<TextFormat>,
    pub(super) limits: ParserLimits,
    pub(super) tools: TextTools,
    pub(super) thoughts: Option<Thoughts>,
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
    thinking: Option<ThinkingSplitter>,
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
    Reasoning(BlockId),
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
        if let Some(thoughts) = &mut self.thoughts {
            thoughts.note(&chunk);
        }
        match chunk {
            Chunk::Opened { block, head } if head.kind == BlockKind::Text => {
                let open = OpenText {
                    block,
                    head,
                    thinking: self.thoughts.as_ref().map(Thoughts::splitter),
                    parser: TextCallParser::with_limits(self.formats.clone(), &self.tools, self.limits),
                    is_used: false,
                    current: Current::None,
                    events: Vec::new(),
                };
                self.open.insert(block, open);
            }
            Chunk::Delta { block, delta: BlockDelta::Text(text) } if self.open.contains_key(&block) => {
                if let Some(open) = self.open.get_mut(&block) {
                    open.run(&mut self.calls_left, out, |open, out| {
                        open.push(&text, &mut self.thoughts, out)
                    });
                }
            }
            Chunk::Closed { block, content } if self.open.contains_key(&block) => {
                if let Some(mut open) = self.open.remove(&block) {
                    open.run(&mut self.calls_left, out, |open, out| open.end_text(&mut self.thoughts, out));
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
            open.run(&mut self.calls_left, out, |open, out| open.end_text(&mut self.thoughts, out));
            open.close(None, out);
        }
        if let Some(turn) = &self.reports_to {
            report_leak(response, &self.tools, turn);
        }
    }
}

impl OpenText {
    /// Reads text, within the number of calls that are left. Fails the stream if the text exceeds a bound.
    fn run(
        &mut self,
        calls_left: &mut usize,
        out: &mut EditedChunks<'_>,
        work: impl FnOnce(&mut Self, &mut EditedChunks<'_>) -> Result<(), ParserError>,
    ) {
        self.parser.calls_left = *calls_left;
        let result = work(self, out);
        *calls_left = self.parser.calls_left;
        if let Err(error) = result {
            out.fail(Error::new(ErrorKind::TooLarge, error.to_string()));
        }
    }

    fn push(
        &mut self,
        text: &str,
        thoughts: &mut Option<Thoughts>,
        out: &mut EditedChunks<'_>,
    ) -> Result<(), ParserError> {
        let Some(thinking) = &mut self.thinking else { return self.push_text(text, out) };
        let mut pieces = Vec::new();
        thinking.push(text, &mut pieces);
        self.take_pieces(pieces, thoughts, out)
    }

    /// Takes text that is no reasoning.
    fn push_text(&mut self, text: &str, out: &mut EditedChunks<'_>) -> Result<(), ParserError> {
        let mut events = std::mem::take(&mut self.events);
        let result = self.parser.push(text, &mut events);
        self.take_events(events.drain(..), out);
        self.events = events;
        result
    }

    /// Emits the text that is held back.
    fn end_text(
        &mut self,
        thoughts: &mut Option<Thoughts>,
        out: &mut EditedChunks<'_>,
    ) -> Result<(), ParserError> {
        let mut pieces = Vec::new();
        if let Some(mut thinking) = self.thinking.take() {
            thinking.finish(&mut pieces);
            if let Some(thoughts) = thoughts {
                thoughts.end_text(thinking);
            }
        }
        self.take_pieces(pieces, thoughts, out)?;
        if let Some(thoughts) = thoughts {
            thoughts.end_reasoning();
        }
        let mut events = Vec::new();
        self.parser.finish(&mut events)?;
        self.take_events(events.into_iter(), out);
        Ok(())
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

    fn take_pieces(
        &mut self,
        pieces: Vec<ThoughtPiece>,
        thoughts: &mut Option<Thoughts>,
        out: &mut EditedChunks<'_>,
    ) -> Result<(), ParserError> {
        for piece in pieces {
            match piece {
                ThoughtPiece::Text(text) => {
                    if let Some(thoughts) = thoughts {
                        thoughts.end_reasoning();
                    }
                    self.push_text(&text, out)?;
                }
                ThoughtPiece::Reasoning(text) => {
                    let text = thoughts.as_mut().map_or(text.clone(), |thoughts| thoughts.unrepeated(&text));
                    if text.is_empty() {
                        continue;
                    }
                    let block = match self.current {
                        Current::Reasoning(block) => block,
                        _ => self.open_block(BlockHead::new(BlockKind::Reasoning), Current::Reasoning, out),
                    };
                    out.push_delta(block, BlockDelta::Reasoning(text.into()));
                }
            }
        }
        Ok(())
    }

    fn take_events(&mut self, events: impl Iterator<Item = ParserEvent>, out: &mut EditedChunks<'_>) {
        for event in events {
            match (event, &mut self.current) {
                (ParserEvent::Text(text), Current::Text(block)) => {
                    out.push_delta(*block, BlockDelta::Text(text.into()));
                }
                (ParserEvent::Text(text), _) => {
                    let block = self.open_text(out);
                    out.push_delta(block, BlockDelta::Text(text.into()));
                }
                (ParserEvent::Opened(opened), _) => self.open_call(opened, out),
                (ParserEvent::Markup(text) | ParserEvent::Body(text), Current::Call(call)) => {
                    call.raw.push_str(&text);
                }
                (ParserEvent::Arguments(text), Current::Call(call)) => {
                    call.call.arguments.push_str(&text);
                    out.push_delta(call.block, BlockDelta::Arguments(text.into()));
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
        head.call = Some(Box::new(CallHead::new(name.clone(), id.clone())));
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
            Current::Text(block) | Current::Reasoning(block) => out.close(block),
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
