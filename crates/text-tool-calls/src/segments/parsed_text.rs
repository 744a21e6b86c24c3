//! `ParsedText`: the segments of a text block with calls in it.

use advisor_core::Text;

use super::event::{BrokenEnd, Invocation, SegmentEvent, SegmentType};
use super::ids::SegmentIds;
use super::text_segment::TextSegment;
use super::tool_segment::ToolSegment;
use crate::parser::TextCallParser;
use crate::parser::event::{CallEnd, ParserEvent};
use crate::parser::limits::ParserError;
use crate::tools::TextTools;

/// The segments of one text block that may have calls in it.
#[derive(Debug)]
pub(super) struct ParsedText {
    parser: TextCallParser,
    tools: TextTools,
    text: Option<TextSegment>,
    call: Option<ToolSegment>,
}

impl ParsedText {
    pub(super) fn new(parser: TextCallParser, tools: TextTools) -> Self {
        Self { parser, tools, text: None, call: None }
    }

    /// Takes a piece of the block; `calls_left` are those of all texts of the answer.
    pub(super) fn push(
        &mut self,
        text: &str,
        calls_left: &mut usize,
        ids: &mut SegmentIds,
        events: &mut Vec<SegmentEvent>,
    ) -> Result<Vec<Invocation>, ParserError> {
        let mut parsed = Vec::new();
        self.parser.set_calls_left(*calls_left);
        let result = self.parser.push(text, &mut parsed);
        *calls_left = self.parser.calls_left();
        let invocations = self.take(parsed, ids, events);
        result.map(|()| invocations)
    }

    /// Ends the block.
    pub(super) fn finish(
        &mut self,
        calls_left: &mut usize,
        ids: &mut SegmentIds,
        events: &mut Vec<SegmentEvent>,
    ) -> Result<Vec<Invocation>, ParserError> {
        let mut parsed = Vec::new();
        self.parser.set_calls_left(*calls_left);
        let result = self.parser.finish(&mut parsed);
        *calls_left = self.parser.calls_left();
        let invocations = self.take(parsed, ids, events);
        self.end_open(None, events);
        result.map(|()| invocations)
    }

    /// Ends the block, because the answer is broken off. Text that is held back is emitted first.
    pub(super) fn break_off(
        &mut self,
        end: &BrokenEnd,
        ids: &mut SegmentIds,
        events: &mut Vec<SegmentEvent>,
    ) {
        let mut parsed = Vec::new();
        // An error has already ended the parser, and then nothing is held back.
        let _ = self.parser.break_off(&mut parsed);
        for event in parsed {
            match event {
                // Not even a call that was undecided until now, and is complete, may run.
                ParserEvent::Closed(_) => self.end_open(Some(end), events),
                event => drop(self.take([event], ids, events)),
            }
        }
        self.end_open(Some(end), events);
    }

    /// Ends the open segments.
    fn end_open(&mut self, end: Option<&BrokenEnd>, events: &mut Vec<SegmentEvent>) {
        if let Some(text) = self.text.take() {
            text.end(end.cloned(), events);
        }
        if let Some(mut call) = self.call.take() {
            call.break_off(end.cloned().unwrap_or_else(BrokenEnd::cut), events);
        }
    }

    fn take(
        &mut self,
        parsed: impl IntoIterator<Item = ParserEvent>,
        ids: &mut SegmentIds,
        events: &mut Vec<SegmentEvent>,
    ) -> Vec<Invocation> {
        let mut invocations = Vec::new();
        for event in parsed {
            match event {
                ParserEvent::Text(text) => {
                    let segment =
                        self.text.get_or_insert_with(|| TextSegment::new(ids.next_text(), SegmentType::Text));
                    segment.push(&text, events);
                }
                ParserEvent::Markup(_) => {}
                ParserEvent::Opened(opened) => {
                    if let Some(text) = self.text.take() {
                        text.end(None, events);
                    }
                    let form = self.tools.form(&opened.name);
                    let id: Text = ids.call(opened.id.as_ref());
                    self.call = Some(ToolSegment::new(id, opened.name, form, events));
                }
                ParserEvent::Body(text) => {
                    self.call.iter_mut().for_each(|call| call.push_written(&text, events));
                }
                ParserEvent::Arguments(text) => {
                    self.call.iter_mut().for_each(|call| call.push_arguments(&text, events));
                }
                ParserEvent::Closed(CallEnd::Complete | CallEnd::AssumedComplete) => {
                    invocations.extend(self.call.take().and_then(|call| call.end(&[], events)));
                }
                ParserEvent::Closed(CallEnd::Cut) => self.end_open(None, events),
            }
        }
        invocations
    }
}
