//! `TextCallEditor`: replaces calls and reasoning in text blocks by separate blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use advisor_core::{
    Block, BlockDelta, BlockHead, BlockId, BlockKind, CallHead, ChatResponse, Chunk, ChunkEditor,
    EditedChunks, Error, ErrorKind, Turn,
};

use super::leaks::report_leak;
use super::open_call::OpenCall;
use super::thoughts::Thoughts;
use crate::parser::TextCallParser;
use crate::parser::event::{OpenedCall, ParserEvent};
use crate::parser::format::TextFormat;
use crate::parser::limits::ParserError;
use crate::parser::settings::ParserSettings;
use crate::thinking::{ThinkingSplitter, ThoughtPiece};
use crate::tools::TextTools;

/// Replaces calls in the text of an answer by blocks of calls, and reasoning in it by blocks of reasoning.
pub(super) struct TextCallEditor {
    pub(super) formats: Vec<TextFormat>,
    pub(super) settings: ParserSettings,
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

impl ChunkEditor for TextCallEditor {
    fn edit(&mut self, chunk: Chunk, out: &mut EditedChunks<'_>) {
        if let Some(thoughts) = &mut self.thoughts {
            thoughts.note(&chunk);
        }
        match chunk {
            Chunk::Opened { block, head } if head.kind == BlockKind::Text => {
                let parser = TextCallParser::with_settings(
                    self.formats.iter().copied(),
                    &self.tools,
                    self.settings.clone(),
                );
                let thinking = self.thoughts.as_mut().map(|thoughts| thoughts.splitter());
                self.open.insert(block, OpenText::new(block, head, thinking, parser));
            }
            Chunk::Delta { block, delta: BlockDelta::Text(text) } if self.open.contains_key(&block) => {
                if let Some(open) = self.open.get_mut(&block) {
                    open.parser.set_calls_left(self.calls_left);
                    let result = open.push(&text, &mut self.thoughts, out);
                    self.calls_left = open.parser.calls_left();
                    fail_with(result, out);
                }
            }
            Chunk::Closed { block, content } if self.open.contains_key(&block) => {
                if let Some(mut open) = self.open.remove(&block) {
                    open.parser.set_calls_left(self.calls_left);
                    let result = open.finish(content, &mut self.thoughts, out);
                    self.calls_left = open.parser.calls_left();
                    fail_with(result, out);
                }
            }
            Chunk::AttemptRestarted { round } => {
                self.open.retain(|block, _| block.round != round);
                self.calls_left = self.settings.limits.calls;
                out.push(Chunk::AttemptRestarted { round });
            }
            chunk => out.push(chunk),
        }
    }

    fn end(&mut self, response: &ChatResponse, out: &mut EditedChunks<'_>) {
        for (_, mut open) in std::mem::take(&mut self.open) {
            open.parser.set_calls_left(self.calls_left);
            let result = open.end(&mut self.thoughts, out);
            self.calls_left = open.parser.calls_left();
            fail_with(result, out);
        }
        if let Some(turn) = &self.reports_to {
            report_leak(response, &self.tools, turn);
        }
    }
}

/// Fails the stream if the text has exceeded a bound.
fn fail_with(result: Result<(), ParserError>, out: &mut EditedChunks<'_>) {
    if let Err(error) = result {
        out.fail(Error::new(ErrorKind::TooLarge, error.to_string()));
    }
}

impl OpenText {
    fn new(
        block: BlockId,
        head: BlockHead,
        thinking: Option<ThinkingSplitter>,
        parser: TextCallParser,
    ) -> Self {
        Self { block, head, thinking, parser, is_used: false, current: Current::None, events: Vec::new() }
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

    /// Ends the block. If nothing in it was changed, it closes as the model closed it, with its provider data.
    fn finish(
        &mut self,
        content: Block,
        thoughts: &mut Option<Thoughts>,
        out: &mut EditedChunks<'_>,
    ) -> Result<(), ParserError> {
        self.end_text(thoughts, out)?;
        match self.current {
            Current::Text(block) if block == self.block => out.push(Chunk::Closed { block, content }),
            _ => self.close_current(out),
        }
        Ok(())
    }

    fn end(
        &mut self,
        thoughts: &mut Option<Thoughts>,
        out: &mut EditedChunks<'_>,
    ) -> Result<(), ParserError> {
        let result = self.end_text(thoughts, out);
        self.close_current(out);
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
        self.end_reasoning(thoughts);
        let mut events = Vec::new();
        self.parser.finish(&mut events)?;
        self.take_events(events, out);
        Ok(())
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
                    self.end_reasoning(thoughts);
                    self.push_text(&text, out)?;
                }
                ThoughtPiece::Reasoning(text) => {
                    let text = match thoughts {
                        Some(thoughts) => thoughts.unrepeated(&text),
                        None => text,
                    };
                    if text.is_empty() {
                        continue;
                    }
                    let block = match self.current {
                        Current::Reasoning(block) => block,
                        _ => self.open_block(BlockKind::Reasoning, Current::Reasoning, out),
                    };
                    out.push_delta(block, BlockDelta::Reasoning(text.into()));
                }
            }
        }
        Ok(())
    }

    fn end_reasoning(&self, thoughts: &mut Option<Thoughts>) {
        if let Some(thoughts) = thoughts {
            thoughts.end_reasoning();
        }
    }

    fn take_events(&mut self, events: impl IntoIterator<Item = ParserEvent>, out: &mut EditedChunks<'_>) {
        for event in events {
            match (event, &mut self.current) {
                (ParserEvent::Text(text), current) => {
                    let block = match current {
                        Current::Text(block) => *block,
                        _ => self.open_text(out),
                    };
                    out.push_delta(block, BlockDelta::Text(text.into()));
                }
                (ParserEvent::Opened(opened), _) => self.open_call(&opened, out),
                (ParserEvent::Markup(text) | ParserEvent::Body(text), Current::Call(call)) => {
                    call.add_raw(&text);
                }
                (ParserEvent::Arguments(text), Current::Call(call)) => {
                    let block = call.add_arguments(&text);
                    out.push_delta(block, BlockDelta::Arguments(text.into()));
                }
                (ParserEvent::Closed(end), Current::Call(call)) => {
                    call.end(end);
                    self.close_current(out);
                }
                _ => {}
            }
        }
    }

    /// Opens a text block: the model's own if the editor has opened no block before, otherwise a new one.
    fn open_text(&mut self, out: &mut EditedChunks<'_>) -> BlockId {
        if self.is_used {
            return self.open_block(BlockKind::Text, Current::Text, out);
        }
        self.close_current(out);
        self.is_used = true;
        self.current = Current::Text(self.block);
        out.push(Chunk::Opened { block: self.block, head: self.head.clone() });
        self.block
    }

    fn open_block(
        &mut self,
        kind: BlockKind,
        current: fn(BlockId) -> Current,
        out: &mut EditedChunks<'_>,
    ) -> BlockId {
        self.close_current(out);
        // Blocks of the editor come after the model's own, so the model's own must not open any more.
        self.is_used = true;
        let block = out.open(self.block, BlockHead::new(kind));
        self.current = current(block);
        block
    }

    fn open_call(&mut self, opened: &OpenedCall, out: &mut EditedChunks<'_>) {
        self.close_current(out);
        self.is_used = true;
        let id = opened.id.clone().unwrap_or_default();
        let mut head = BlockHead::new(BlockKind::ToolCall);
        head.call = Some(Box::new(CallHead::new(opened.name.clone(), id)));
        let block = out.open(self.block, head);
        self.current = Current::Call(OpenCall::new(block, opened));
    }

    fn close_current(&mut self, out: &mut EditedChunks<'_>) {
        match std::mem::replace(&mut self.current, Current::None) {
            Current::None => {}
            Current::Text(block) | Current::Reasoning(block) => out.close(block),
            Current::Call(call) => out.push(call.close()),
        }
    }
}
