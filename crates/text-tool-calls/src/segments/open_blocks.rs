//! `OpenBlocks`: the segments of the blocks that are open.

use std::collections::BTreeMap;
use std::fmt;

use advisor_core::{Block, BlockDelta, BlockHead, BlockId, BlockKind, Text};

use super::event::{BrokenEnd, Invocation, SegmentEvent, SegmentType};
use super::ids::SegmentIds;
use super::parsed_text::ParsedText;
use super::text_segment::TextSegment;
use super::tool_segment::ToolSegment;
use crate::parser::TextCallParser;
use crate::parser::format::TextFormat;
use crate::parser::limits::ParserError;
use crate::parser::settings::ParserSettings;
use crate::tools::TextTools;

/// The form in which calls arrive.
#[derive(Debug)]
pub(super) enum Mode {
    PassThrough,
    Native,
    Parsing(TextFormat, ParserSettings),
}

/// The segments of an open block.
#[derive(Debug)]
enum Open {
    Text(TextSegment),
    Parsed(Box<ParsedText>),
    Tool(Box<ToolSegment>),
    /// A block without segments.
    Hidden,
}

/// The open blocks of an answer, each with its segments.
pub(super) struct OpenBlocks {
    mode: Mode,
    tools: TextTools,
    ids: SegmentIds,
    open: BTreeMap<BlockId, Open>,
    /// How many more calls the texts of the answer of a round may have.
    calls_left: BTreeMap<u32, usize>,
}

impl OpenBlocks {
    pub(super) fn new(mode: Mode, tools: &TextTools) -> Self {
        Self {
            mode,
            tools: tools.clone(),
            ids: SegmentIds::default(),
            open: BTreeMap::new(),
            calls_left: BTreeMap::new(),
        }
    }

    pub(super) fn number_with_prefix(&mut self, prefix: Text) {
        self.ids = SegmentIds::new(prefix);
    }

    pub(super) fn reset(&mut self) {
        self.ids = self.ids.renewed();
        self.open.clear();
        self.calls_left.clear();
    }

    /// Forgets the answer of a round, for the next attempt at it.
    pub(super) fn restart(&mut self, round: u32, end: &BrokenEnd, events: &mut Vec<SegmentEvent>) {
        self.break_off(|block| block.round == round, end, events);
        self.calls_left.remove(&round);
    }

    /// Begins the segments of a block.
    pub(super) fn open(&mut self, block: BlockId, head: &BlockHead, events: &mut Vec<SegmentEvent>) {
        let open = match (head.kind, &self.mode, &head.call) {
            (BlockKind::Text, Mode::Parsing(format, settings), _) => {
                let parser = TextCallParser::with_settings([*format], &self.tools, settings.clone());
                self.calls_left.entry(block.round).or_insert(settings.limits.calls);
                Open::Parsed(Box::new(ParsedText::new(parser, self.tools.clone())))
            }
            (BlockKind::Text | BlockKind::Refusal, ..) => {
                Open::Text(TextSegment::new(self.ids.next_text(), SegmentType::Text))
            }
            (BlockKind::Reasoning, ..) => {
                Open::Text(TextSegment::new(self.ids.next_text(), SegmentType::Reasoning))
            }
            (BlockKind::ToolCall, Mode::Native | Mode::Parsing(..), Some(call)) => {
                let id = self.ids.call(Some(&call.call_id));
                let form = self.tools.form(&call.name);
                Open::Tool(Box::new(ToolSegment::new(id, call.name.clone(), form, events)))
            }
            _ => Open::Hidden,
        };
        self.open.insert(block, open);
    }

    /// Takes a piece of a block.
    pub(super) fn extend(
        &mut self,
        block: BlockId,
        delta: &BlockDelta,
        events: &mut Vec<SegmentEvent>,
    ) -> Result<Vec<Invocation>, ParserError> {
        match (self.open.get_mut(&block), delta) {
            (Some(Open::Parsed(parsed)), BlockDelta::Text(text)) => {
                let calls_left = self.calls_left.entry(block.round).or_default();
                return parsed.push(text, calls_left, &mut self.ids, events);
            }
            (
                Some(Open::Text(segment)),
                BlockDelta::Text(text) | BlockDelta::Reasoning(text) | BlockDelta::Refusal(text),
            ) => {
                segment.push(text, events);
            }
            (Some(Open::Tool(call)), BlockDelta::Arguments(text)) => {
                call.push_arguments(text, events);
                call.push_written(text, events);
            }
            (Some(Open::Hidden), BlockDelta::Media(media)) => {
                let id = self.ids.next_text();
                let media = serde_json::to_value(media).unwrap_or_default();
                events.push(SegmentEvent::start(&id, SegmentType::Media).with_metadata("media", media));
                events.push(SegmentEvent::end(&id));
            }
            _ => {}
        }
        Ok(Vec::new())
    }

    /// Ends the segments of a block.
    pub(super) fn close(
        &mut self,
        block: BlockId,
        content: &Block,
        events: &mut Vec<SegmentEvent>,
    ) -> Result<Vec<Invocation>, ParserError> {
        match self.open.remove(&block) {
            Some(Open::Parsed(mut parsed)) => {
                let calls_left = self.calls_left.entry(block.round).or_default();
                return parsed.finish(calls_left, &mut self.ids, events);
            }
            Some(Open::Text(segment)) => segment.end(None, events),
            Some(Open::Tool(mut call)) => {
                if content.as_tool_call().is_some_and(|call| call.complete) {
                    return Ok(call.end(content.provider_data(), events).into_iter().collect());
                }
                call.break_off(BrokenEnd::Failed("the call is incomplete".into()), events);
            }
            Some(Open::Hidden) | None => {}
        }
        Ok(Vec::new())
    }

    /// Ends the open blocks that `is_meant` selects.
    pub(super) fn break_off(
        &mut self,
        is_meant: impl Fn(BlockId) -> bool,
        end: &BrokenEnd,
        events: &mut Vec<SegmentEvent>,
    ) {
        for (block, open) in std::mem::take(&mut self.open) {
            match open {
                open if !is_meant(block) => {
                    self.open.insert(block, open);
                }
                Open::Text(text) => text.end(Some(end.clone()), events),
                Open::Parsed(mut parsed) => parsed.break_off(end, &mut self.ids, events),
                Open::Tool(mut call) => call.break_off(end.clone(), events),
                Open::Hidden => {}
            }
        }
    }

    /// Ends the next open block with the answer. Returns its round and its invocations.
    pub(super) fn finish_next(
        &mut self,
        events: &mut Vec<SegmentEvent>,
    ) -> Option<(u32, Result<Vec<Invocation>, ParserError>)> {
        let (block, open) = self.open.pop_first()?;
        let mut result = Ok(Vec::new());
        match open {
            Open::Text(text) => text.end(None, events),
            Open::Parsed(mut parsed) => {
                let calls_left = self.calls_left.entry(block.round).or_default();
                result = parsed.finish(calls_left, &mut self.ids, events);
            }
            Open::Tool(mut call) => call.break_off(BrokenEnd::cut(), events),
            Open::Hidden => {}
        }
        Some((block.round, result))
    }
}

impl fmt::Debug for OpenBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenBlocks")
            .field("mode", &self.mode)
            .field("open", &self.open.len())
            .finish_non_exhaustive()
    }
}
