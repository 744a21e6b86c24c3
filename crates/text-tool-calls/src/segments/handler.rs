//! `SegmentHandler`: chunks in, segment events and invocations out.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use advisor_core::{Chunk, Text, drop_caught};

use super::event::{BrokenEnd, Invocation, SegmentEvent, SegmentEventType};
use super::open_blocks::{Mode, OpenBlocks};
use crate::format::ToolCallFormat;
use crate::parser::format::TextFormat;
use crate::parser::limits::ParserError;
use crate::parser::settings::ParserSettings;
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
/// In a chain with [`TextToolCalls`](crate::TextToolCalls), [`native`](Self::native) is enough, with the client's tools
/// (`TextTools::from(client.tools())`). The stream has calls if the tool loop shows them (`ToolCallStreaming::All`).
///
/// There is a kind of handler for each way in which calls arrive:
///
/// | handler | text | calls of the provider's interface |
/// | --- | --- | --- |
/// | [`pass_through`](Self::pass_through) | text segments | ignored |
/// | [`native`](Self::native) | text segments | segments and invocations |
/// | [`parsing`](Self::parsing) | parsed for calls | segments and invocations |
///
/// The id of a call's segment is the id of its invocation. The content of a call is what the model wrote: its text,
/// or the characters of its arguments. The content of a tool with a [short form](crate::ToolForm) is one argument,
/// decoded while it is generated; its start waits for the required arguments.
///
/// A call whose arguments are broken ends as failed, and so does one that the end of the answer cuts off. Neither is
/// an invocation.
///
/// The handler keeps all events, so it needs as much memory as the answers it has read. The aggregator bounds each.
///
/// # Example
/// ```
/// use advisor_core::{ChatResponse, Chunk, ChunkStream, FinishReason, Message, ToolDefinition};
/// use futures::StreamExt;
/// use serde_json::json;
/// use text_tool_calls::segments::SegmentHandler;
/// use text_tool_calls::{PromptFormat, TextTools, ToolCallFormat};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let time = ToolDefinition::new("time", "Tells the time.", json!({"type": "object"}));
/// let format = ToolCallFormat::Text(PromptFormat::Xml);
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
    blocks: OpenBlocks,
    events: Vec<SegmentEvent>,
    /// The invocations, each with its round.
    invocations: Vec<(u32, Invocation)>,
    /// The ids of the segments that have ended, each with its round.
    ended: Vec<(u32, Text)>,
    is_finalized: bool,
    on_event: Option<Callback<SegmentEvent>>,
    on_invocation: Option<Callback<Invocation>>,
}

type Callback<T> = Box<dyn FnMut(&T) + Send>;

/// The reason why a [`SegmentHandler`] does not take a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The handler was finalized; [`SegmentHandler::reset`] makes it usable again.
    #[error("the handler was finalized; reset it for another answer")]
    Finalized,
    /// The text cannot be parsed further. The open segments have ended as failed.
    #[error(transparent)]
    Parser(#[from] ParserError),
}

impl SegmentHandler {
    /// Creates the handler for these tools: without tools, text passes through; else calls are read in this format.
    #[must_use]
    pub fn new(format: ToolCallFormat, tools: &TextTools) -> Self {
        match format {
            _ if tools.is_empty() => Self::pass_through(),
            ToolCallFormat::Api => Self::native(tools),
            ToolCallFormat::Text(format) => Self::parsing(format.into(), tools, ParserSettings::default()),
        }
    }

    /// Creates a handler that takes all text for text and ignores calls.
    #[must_use]
    pub fn pass_through() -> Self {
        Self::with_mode(Mode::PassThrough, &TextTools::default())
    }

    /// Creates a handler of calls that arrive by the provider's interface.
    #[must_use]
    pub fn native(tools: &TextTools) -> Self {
        Self::with_mode(Mode::Native, tools)
    }

    /// Creates a handler of calls in the text. Calls that arrive by the provider's interface count as well.
    #[must_use]
    pub fn parsing(format: TextFormat, tools: &TextTools, settings: ParserSettings) -> Self {
        Self::with_mode(Mode::Parsing(format, settings), tools)
    }

    fn with_mode(mode: Mode, tools: &TextTools) -> Self {
        Self {
            blocks: OpenBlocks::new(mode, tools),
            events: Vec::new(),
            invocations: Vec::new(),
            ended: Vec::new(),
            is_finalized: false,
            on_event: None,
            on_invocation: None,
        }
    }

    /// Sets the beginning of the ids that the handler makes, such as the id of the turn.
    #[must_use]
    pub fn with_id_prefix(mut self, prefix: impl Into<Text>) -> Self {
        self.blocks.number_with_prefix(prefix.into());
        self
    }

    /// Calls `callback` for each event. A panic in it is caught, and the handler goes on.
    #[must_use]
    pub fn on_event(self, callback: impl FnMut(&SegmentEvent) + Send + 'static) -> Self {
        Self { on_event: Some(Box::new(callback)), ..self }
    }

    /// Calls `callback` for each invocation, after the event that ends its segment. A panic in it is caught.
    #[must_use]
    pub fn on_invocation(self, callback: impl FnMut(&Invocation) + Send + 'static) -> Self {
        Self { on_invocation: Some(Box::new(callback)), ..self }
    }

    /// Takes a chunk. Returns its events.
    ///
    /// # Errors
    /// [`SegmentError::Finalized`] after the end. [`SegmentError::Parser`] if a call in the text is too long, and at
    /// one call too many in the texts of an answer.
    pub fn feed(&mut self, chunk: &Chunk) -> Result<Vec<SegmentEvent>, SegmentError> {
        if self.is_finalized {
            return Err(SegmentError::Finalized);
        }
        let mut events = Vec::new();
        let result = match chunk {
            Chunk::Opened { block, head } => {
                self.blocks.open(*block, head, &mut events);
                Ok(Vec::new())
            }
            Chunk::Delta { block, delta } => self.blocks.extend(*block, delta, &mut events),
            Chunk::Closed { block, content } => self.blocks.close(*block, content, &mut events),
            Chunk::AttemptRestarted { round } => {
                self.invocations.retain(|(of, _)| of != round);
                let end = BrokenEnd::Interrupted("the model is called again".into());
                self.take_back(*round, &end, &mut events);
                self.blocks.restart(*round, &end, &mut events);
                Ok(Vec::new())
            }
            _ => Ok(Vec::new()),
        };
        match result {
            Ok(invocations) => {
                let round = chunk.round();
                if !matches!(chunk, Chunk::AttemptRestarted { .. }) {
                    let ends = events.iter().filter(|event| event.event_type == SegmentEventType::End);
                    self.ended.extend(ends.map(|end| (round, end.segment_id.clone())));
                }
                self.keep(&events, invocations.into_iter().map(|invocation| (round, invocation)));
                Ok(events)
            }
            Err(error) => {
                self.is_finalized = true;
                self.blocks.break_off(|_| true, &BrokenEnd::Failed(error.to_string().into()), &mut events);
                self.keep(&events, []);
                Err(error.into())
            }
        }
    }

    /// Ends the answer: text segments end, and calls that are still open end as failed. A second call returns
    /// nothing.
    ///
    /// # Errors
    /// [`SegmentError::Parser`] if a call in the text is too long.
    pub fn finalize(&mut self) -> Result<Vec<SegmentEvent>, SegmentError> {
        let mut events = Vec::new();
        if std::mem::replace(&mut self.is_finalized, true) {
            return Ok(events);
        }
        let (mut result, mut invocations) = (Ok(()), Vec::new());
        while let Some((round, ended)) = self.blocks.finish_next(&mut events) {
            match ended {
                Ok(found) => invocations.extend(found.into_iter().map(|invocation| (round, invocation))),
                Err(error) => result = Err(error.into()),
            }
        }
        self.keep(&events, invocations);
        result.map(|()| events)
    }

    /// Ends the answer because it was interrupted: open segments end so, and open calls are no invocations, also with
    /// [`OnCut::Complete`](crate::OnCut::Complete).
    pub fn finalize_interrupted(&mut self, reason: impl Into<Text>) -> Vec<SegmentEvent> {
        self.finalize_broken(&BrokenEnd::Interrupted(reason.into()))
    }

    /// Ends the answer because it failed: open segments end so, and open calls are no invocations, also with
    /// [`OnCut::Complete`](crate::OnCut::Complete).
    pub fn finalize_failed(&mut self, error: impl Into<Text>) -> Vec<SegmentEvent> {
        self.finalize_broken(&BrokenEnd::Failed(error.into()))
    }

    fn finalize_broken(&mut self, end: &BrokenEnd) -> Vec<SegmentEvent> {
        let mut events = Vec::new();
        if !std::mem::replace(&mut self.is_finalized, true) {
            self.blocks.break_off(|_| true, end, &mut events);
            self.keep(&events, []);
        }
        events
    }

    /// Returns the invocations so far, in order.
    pub fn invocations(&self) -> impl Iterator<Item = &Invocation> {
        self.invocations.iter().map(|(_, invocation)| invocation)
    }

    /// Returns the events so far, in order.
    #[must_use]
    pub fn events(&self) -> &[SegmentEvent] {
        &self.events
    }

    /// Forgets the answer, so that the handler takes another one. Callbacks and the prefix of ids stay.
    pub fn reset(&mut self) {
        self.blocks.reset();
        self.events.clear();
        self.invocations.clear();
        self.ended.clear();
        self.is_finalized = false;
    }

    /// Ends the segments of a round that have ended once more, as interrupted.
    fn take_back(&mut self, round: u32, end: &BrokenEnd, events: &mut Vec<SegmentEvent>) {
        let void = self.ended.extract_if(.., |(of, _)| *of == round);
        events.extend(void.map(|(_, id)| SegmentEvent::end(id).with_broken_end(end.clone())));
    }

    /// Keeps events and invocations, and calls back.
    fn keep(&mut self, events: &[SegmentEvent], invocations: impl IntoIterator<Item = (u32, Invocation)>) {
        self.events.extend_from_slice(events);
        if let Some(callback) = &mut self.on_event {
            events.iter().for_each(|event| call_back(callback, event));
        }
        for (round, invocation) in invocations {
            if let Some(callback) = &mut self.on_invocation {
                call_back(callback, &invocation);
            }
            self.invocations.push((round, invocation));
        }
    }
}

/// Calls a callback and contains its panic, which the panic hook has reported.
fn call_back<T>(callback: &mut Callback<T>, value: &T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| callback(value))) {
        drop_caught(panic);
        tracing::warn!("a callback of a segment handler panicked");
    }
}

impl fmt::Debug for SegmentHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("SegmentHandler");
        debug.field("blocks", &self.blocks).field("events", &self.events.len());
        debug.field("invocations", &self.invocations.len()).finish_non_exhaustive()
    }
}
