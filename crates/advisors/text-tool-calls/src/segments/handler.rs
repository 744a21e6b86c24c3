//! `SegmentHandler`: chunks in, segment events and invocations out.

use std::collections::BTreeMap;
use std::fmt;

use advisor_core::{BlockDelta, BlockHead, BlockId, BlockKind, Chunk, Text};

use super::event::{BrokenEnd, Invocation, SegmentEvent, SegmentEventType, SegmentType};
use super::open::{End, Open, SegmentIds, Segments};
use crate::format::ToolCallFormat;
use crate::parser::TextCallParser;
use crate::parser::event::{ParserError, ParserLimits};
use crate::tools::TextTools;

/// Turns the chunks of an answer, or of all answers of a turn, into segments, and calls into invocations.
///
/// [`feed`](Self::feed) takes the chunks, and [`finalize`](Self::finalize) ends them. [`reset`](Self::reset) prepares
/// the handler for the next ones. A turn of several rounds has one answer per round. There are two ways to read it:
///
/// - A handler per round. Its ids restart, so its [prefix](Self::with_id_prefix) names the round.
/// - One handler for all rounds, finalized at the end of the turn. Its ids are unique in the turn: the numbers go on,
///   and a call whose id an earlier round had gets another one. Events and invocations of all rounds are kept. The
///   bound on calls holds for each round, and a restart takes back the segments of its round only.
///
/// Either way, chunks of tools that run are no segments, and [`invocations`](Self::invocations) has also the calls that
/// a tool loop runs.
///
/// In a chain with [`TextToolCalls`](crate::TextToolCalls), [`ToolCallFormat::Api`] is enough, with the client's tools
/// (`TextTools::new(client.tools().definitions())`). The stream has calls if the tool loop shows them (`ToolCallStreaming::All`).
///
/// | format | text | calls of the provider's interface |
/// | --- | --- | --- |
/// | any, without tools | text segments | ignored |
/// | [`ToolCallFormat::Api`] | text segments | segments and invocations |
/// | [`ToolCallFormat::Text`] | parsed for calls | segments and invocations |
///
/// The id of a call's segment is the id of its invocation. The content of a call is what the model wrote: its text,
/// or the characters of its arguments. The content of a tool with a [short form](crate::ToolForm) is one argument,
/// decoded while it is generated; its start waits for the required arguments.
///
/// A call whose arguments are broken ends as failed, and so does one that the end of the answer cuts off. Neither is
/// an invocation.
///
/// Calls in XML and JSON have their content at the end of an argument or of the call, except the text of a form that is
/// read unchanged, such as that of a file.
///
/// The handler keeps all events, so it needs as much memory as the answers it has read. The aggregator bounds each.
///
/// # Example
/// ```
/// use advisor_core::{ChatResponse, Chunk, ChunkStream, FinishReason, Message, ToolDefinition};
/// use futures::StreamExt;
/// use serde_json::json;
/// use text_tool_calls::segments::SegmentHandler;
/// use text_tool_calls::{TextFormat, TextTools, ToolCallFormat};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let time = ToolDefinition::new("time", "Tells the time.", json!({"type": "object"}));
/// let format = ToolCallFormat::Text(TextFormat::Xml);
/// let mut handler = SegmentHandler::new(format, &TextTools::new([&time])).with_id_prefix("turn_1:");
/// let answer = ChatResponse::new(1, Message::assistant("So: <tool name=\"time\"/>"), FinishReason::Stop);
/// let mut chunks = ChunkStream::answer(answer);
/// while let Some(chunk) = chunks.next().await {
///     for event in handler.feed(&chunk?)? {
///         println!("{}", serde_json::to_string(&event)?);
///     }
/// }
/// handler.finalize()?;
/// let calls: Vec<_> = handler.invocations().map(|call| (call.id.as_str(), call.name.as_str())).collect();
/// assert_eq!(calls, [("turn_1:call_1", "time")]);
/// # Ok(()) }
/// ```
pub struct SegmentHandler {
    format: ToolCallFormat,
    all: Segments,
    /// The segments of the open blocks.
    open: BTreeMap<BlockId, Open>,
    /// The round that is read.
    round: u32,
    /// Where its events and invocations begin.
    of_round: (usize, usize),
    is_finalized: bool,
}

impl SegmentHandler {
    /// Creates a handler that reads calls of these tools in this format. Without tools, text passes through, and calls of
    /// the interface are read.
    #[must_use]
    pub fn new(format: ToolCallFormat, tools: &TextTools) -> Self {
        Self {
            format: if tools.is_empty() { ToolCallFormat::Api } else { format },
            all: Segments { tools: tools.clone(), ..Segments::default() },
            open: BTreeMap::new(),
            round: 0,
            of_round: (0, 0),
            is_finalized: false,
        }
    }

    /// Sets the beginning of the ids that the handler makes, such as the id of the turn.
    #[must_use]
    pub fn with_id_prefix(mut self, prefix: impl Into<Text>) -> Self {
        self.all.ids = SegmentIds::new(prefix.into());
        self
    }

    /// Takes a chunk. Returns its events.
    ///
    /// # Errors
    /// [`ParserError::Ended`] after the end. Others if a call in the text is too long, and at one call too many in the
    /// texts of an answer; then the open segments have ended as failed.
    pub fn feed(&mut self, chunk: &Chunk) -> Result<Vec<SegmentEvent>, ParserError> {
        if self.is_finalized {
            return Err(ParserError::Ended);
        }
        if chunk.round() != self.round {
            self.begin_round(chunk.round());
        }
        let before = self.all.events.len();
        let result = match chunk {
            Chunk::Opened { block, head } => {
                if let Some(open) = self.open(head) {
                    self.open.insert(*block, open);
                }
                Ok(())
            }
            Chunk::Delta { delta: BlockDelta::Media(media), .. } => {
                let id = self.all.ids.next_text();
                let media = serde_json::to_value(media).unwrap_or_default();
                let start = SegmentEvent::start(&id, SegmentType::Media).with_metadata("media", media);
                self.all.events.extend([start, SegmentEvent::end(&id)]);
                Ok(())
            }
            Chunk::Delta { block, delta } => match self.open.get_mut(block) {
                Some(open) => open.push(delta, &mut self.all),
                None => Ok(()),
            },
            Chunk::Closed { block, content } => match self.open.remove(block) {
                Some(open) => open.end(End::Closed(content), &mut self.all),
                None => Ok(()),
            },
            Chunk::AttemptRestarted { .. } => {
                self.take_back();
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = result {
            self.finalize_failed(error.to_string());
            return Err(error);
        }
        Ok(self.since(before))
    }

    /// Ends the answer: text segments end, and calls that are still open end as failed. A second call returns
    /// nothing.
    ///
    /// # Errors
    /// As [`feed`](Self::feed), for text that was held back.
    pub fn finalize(&mut self) -> Result<Vec<SegmentEvent>, ParserError> {
        self.end_all(End::Cut)
    }

    /// Ends the answer because it was interrupted: open segments end so, and open calls are no invocations.
    pub fn finalize_interrupted(&mut self, reason: impl Into<Text>) -> Vec<SegmentEvent> {
        self.end_all(End::Broken(&BrokenEnd::Interrupted(reason.into()))).unwrap_or_default()
    }

    /// Ends the answer because it failed: open segments end so, and open calls are no invocations.
    pub fn finalize_failed(&mut self, error: impl Into<Text>) -> Vec<SegmentEvent> {
        self.end_all(End::Broken(&BrokenEnd::Failed(error.into()))).unwrap_or_default()
    }

    /// Returns the invocations so far, in order.
    pub fn invocations(&self) -> impl Iterator<Item = &Invocation> {
        self.all.invocations.iter()
    }

    /// Returns the events so far, in order.
    #[must_use]
    pub fn events(&self) -> &[SegmentEvent] {
        &self.all.events
    }

    /// Forgets the answer, so that the handler takes another one. The prefix of ids stays.
    pub fn reset(&mut self) {
        let (tools, ids) = (self.all.tools.clone(), self.all.ids.renewed());
        self.all = Segments { tools, ids, ..Segments::default() };
        self.open.clear();
        (self.round, self.of_round) = (0, (0, 0));
        self.is_finalized = false;
    }

    /// Begins the segments of a block. A block of another kind has none.
    fn open(&mut self, head: &BlockHead) -> Option<Open> {
        match (head.kind, self.format, &head.call) {
            (BlockKind::Text, ToolCallFormat::Text(format), _) => {
                let parser = TextCallParser::new([format], &self.all.tools, ParserLimits::default());
                Some(Open::parsed(parser))
            }
            (BlockKind::Text | BlockKind::Refusal, ..) => {
                Some(Open::text(SegmentType::Text, &mut self.all.ids))
            }
            (BlockKind::Reasoning, ..) => Some(Open::text(SegmentType::Reasoning, &mut self.all.ids)),
            (BlockKind::ToolCall, _, Some(call)) => {
                Some(Open::tool(&call.name, Some(&call.call_id), &mut self.all))
            }
            _ => None,
        }
    }

    fn end_all(&mut self, end: End<'_>) -> Result<Vec<SegmentEvent>, ParserError> {
        if std::mem::replace(&mut self.is_finalized, true) {
            return Ok(Vec::new());
        }
        let before = self.all.events.len();
        let mut result = Ok(());
        for open in std::mem::take(&mut self.open).into_values() {
            result = open.end(end, &mut self.all).and(result);
        }
        result.map(|()| self.since(before))
    }

    fn since(&self, before: usize) -> Vec<SegmentEvent> {
        self.all.events.get(before..).unwrap_or_default().to_vec()
    }

    fn begin_round(&mut self, number: u32) {
        self.all.calls_left = ParserLimits::default().calls;
        self.round = number;
        self.of_round = (self.all.events.len(), self.all.invocations.len());
    }

    /// Ends the segments of the round once more, as interrupted, for the next attempt at it.
    fn take_back(&mut self) {
        self.open.clear();
        let (first_event, first_invocation) = self.of_round;
        self.all.invocations.truncate(first_invocation);
        let end = BrokenEnd::Interrupted("the model is called again".into());
        let of_round = self.all.events.get(first_event..).unwrap_or_default().iter();
        let starts = of_round.filter(|event| event.event_type == SegmentEventType::Start);
        let ends = starts.map(|start| SegmentEvent::end(&start.segment_id).with_broken_end(end.clone()));
        let ends: Vec<_> = ends.collect();
        self.all.events.extend(ends);
        self.begin_round(self.round);
    }
}

/// Events are content, so they are counted only.
impl fmt::Debug for SegmentHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("SegmentHandler");
        debug.field("format", &self.format).field("events", &self.all.events.len()).finish_non_exhaustive()
    }
}
