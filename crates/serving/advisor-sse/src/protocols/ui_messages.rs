//! `UiMessages`: the UI message stream of the AI SDK.

use std::collections::BTreeMap;

use advisor_core::{
    BlockContent, BlockDelta, BlockHead, BlockId, BlockKind, Chunk, ErrorKind, Text, ToolCall, ToolEvent,
    ToolEventKind, ToolResult,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::content;
use crate::encoder::Encoder;
use crate::turn::{ClientCall, Ending, Incomplete, Turn};
use crate::{Approvals, Failure, Frames};

/// The UI message stream of the AI SDK from 6.0.0 on, which `useChat` reads.
///
/// - A round is a step. Text and reasoning are parts; a refusal is text.
/// - Calls are dynamic tools: the input streams while it forms, the output follows when the tool ends.
/// - A call without output at the end is one that the client has to run, or one that a person has to approve.
/// - When the model is called again, the parts of the void attempt end, and a `data-restart` part names the round.
/// - An answer that is cut has a last part `data-incomplete {reason, message}`. The reason is `length`,
///   `content_filter`, `interrupted` or `limit`.
/// - Citations with an address are sources, each with its own id.
///
/// Not written are the data stream of AI SDK 4, `source-document`, which needs a media type, `message-metadata`, whose type
/// each application defines, and preliminary outputs.
///
/// # Errors
/// A failed tool is `tool-output-error`, and so is a call that the application denies. A failed turn is `error`, a
/// cancelled one `abort`.
#[derive(Debug)]
pub struct UiMessages {
    message_id: Text,
    turn: Turn,
    approvals: Option<Approvals>,
    /// The round whose step is open.
    step: Option<u32>,
    /// The open parts of text, and their kinds.
    texts: BTreeMap<BlockId, BlockKind>,
    calls: BTreeMap<BlockId, Call>,
    /// The number of sources so far.
    sources: u32,
}

impl UiMessages {
    /// Creates the encoder of one turn; the id names the assistant's message on the client.
    pub fn new(message_id: impl Into<Text>) -> Self {
        Self {
            message_id: message_id.into(),
            turn: Turn::default(),
            approvals: None,
            step: None,
            texts: BTreeMap::new(),
            calls: BTreeMap::new(),
            sources: 0,
        }
    }

    /// Asks the client for approvals of these calls. By default, it asks for none.
    #[must_use]
    pub fn with_approvals(self, approvals: Approvals) -> Self {
        Self { approvals: Some(approvals), ..self }
    }

    /// Makes the ids of the turn's calls end so. A turn that continues a message needs it: a message has one part per id, and
    /// models repeat ids.
    #[must_use]
    pub fn with_call_suffix(mut self, suffix: impl Into<Text>) -> Self {
        self.turn.set_call_suffix(suffix.into());
        self
    }

    /// Writes the result of an approved call. The call is one of an earlier turn, and the client's message has its part.
    pub fn earlier_result(&mut self, call_id: &str, result: &ToolResult, frames: &mut Frames) {
        self.output(call_id, result, frames);
    }

    /// Writes that a person has denied a call of an earlier turn, after a request for its approval.
    pub fn earlier_denial(&mut self, call_id: &str, frames: &mut Frames) {
        frames.data(&Event::ToolOutputDenied { tool_call_id: call_id });
    }

    fn delta(&mut self, chunk: &Chunk, frames: &mut Frames) {
        let Chunk::Delta { block, delta } = chunk else { return };
        match delta {
            BlockDelta::Text(delta) | BlockDelta::Refusal(delta) => {
                frames.data(&Event::TextDelta { id: &self.turn.part_id(*block), delta });
            }
            BlockDelta::Reasoning(delta) => {
                frames.data(&Event::ReasoningDelta { id: &self.turn.part_id(*block), delta });
            }
            BlockDelta::Arguments(delta) => {
                let tool_call_id = &self.turn.id(*block);
                frames.data(&Event::ToolInputDelta { tool_call_id, input_text_delta: delta });
            }
            BlockDelta::Media(media) => {
                if let Some(url) = content::url(media) {
                    frames.data(&Event::File { url: &url, media_type: &media.mime });
                }
            }
            BlockDelta::Citation(citation) => {
                if let Some(url) = &citation.url {
                    self.sources += 1;
                    let source_id = &format!("source-{}", self.sources);
                    frames.data(&Event::SourceUrl { source_id, url, title: citation.title.as_deref() });
                }
            }
            _ => {}
        }
    }
}

impl Encoder for UiMessages {
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("content-type", "text/event-stream"),
            ("cache-control", "no-store"),
            ("x-accel-buffering", "no"),
            ("x-vercel-ai-ui-message-stream", "v1"),
        ]
    }

    fn begin(&mut self, frames: &mut Frames) {
        frames.data(&Event::Start { message_id: &self.message_id });
    }

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        self.turn.note(chunk);
        match chunk {
            Chunk::Opened { block, head } => self.open(*block, head, frames),
            Chunk::Delta { .. } => self.delta(chunk, frames),
            Chunk::Closed { block, content } => match content.content() {
                BlockContent::ToolCall(call) => self.close_call(*block, call, frames),
                _ => self.close_text(*block, frames),
            },
            Chunk::Tool(event) => self.tool(event, frames),
            Chunk::AttemptRestarted { round } => self.restart(*round, frames),
            Chunk::Completed(response) => {
                let calls = self.turn.client_calls(response);
                self.client_calls(&calls, frames);
                self.finish_step(frames);
                let ending = Ending::new(&response.finish.reason, !calls.is_empty());
                if let Some(data) = ending.incomplete() {
                    frames.data(&Event::DataIncomplete { data });
                }
                frames.data(&Event::Finish { finish_reason: finish_reason(ending) });
                frames.done();
            }
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        match failure.kind {
            ErrorKind::Cancelled => frames.data(&Event::Abort),
            _ => frames.data(&Event::Error { error_text: failure.message }),
        }
        frames.done();
    }
}

/// The state of a call at the client.
#[derive(Debug)]
struct Call {
    name: Text,
    state: CallState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    /// Its input forms.
    Forming,
    /// Its input is complete.
    Available,
    /// It has an output or an error.
    Ended,
}

impl UiMessages {
    fn open(&mut self, block: BlockId, head: &BlockHead, frames: &mut Frames) {
        self.start_step(block.round, frames);
        let id = self.turn.part_id(block);
        match head.kind {
            BlockKind::Text | BlockKind::Refusal => {
                self.texts.insert(block, head.kind);
                frames.data(&Event::TextStart { id: &id });
            }
            BlockKind::Reasoning => {
                self.texts.insert(block, head.kind);
                frames.data(&Event::ReasoningStart { id: &id });
            }
            BlockKind::ToolCall => {
                let name = head.call.as_ref().map(|call| call.name.clone()).unwrap_or_default();
                let id = self.turn.id(block);
                frames.data(&Event::ToolInputStart { tool_call_id: &id, tool_name: &name, dynamic: true });
                self.calls.insert(block, Call { name, state: CallState::Forming });
            }
            _ => {}
        }
    }

    fn close_text(&mut self, block: BlockId, frames: &mut Frames) {
        let id = self.turn.part_id(block);
        match self.texts.remove(&block) {
            Some(BlockKind::Reasoning) => frames.data(&Event::ReasoningEnd { id: &id }),
            Some(_) => frames.data(&Event::TextEnd { id: &id }),
            None => {}
        }
    }

    /// Sends the input of a call whose arguments are JSON. Others have an error when the tool loop refuses them.
    fn close_call(&mut self, block: BlockId, call: &ToolCall, frames: &mut Frames) {
        if call.complete && call.parsed_arguments().is_ok() {
            self.make_available(block, &call.name, &call.arguments, frames);
        }
    }

    fn tool(&mut self, event: &ToolEvent, frames: &mut Frames) {
        let block = event.block;
        self.start_step(block.round, frames);
        match &event.kind {
            ToolEventKind::Started { arguments } => {
                self.make_available(block, &event.name, arguments, frames)
            }
            ToolEventKind::Finished { result } => self.end(block, result, frames),
            ToolEventKind::NotStarted { result, .. } => self.not_started(event, result, frames),
            _ => {}
        }
    }

    /// Sends the input of open calls, if the client does not have it yet, and asks for their approvals.
    fn client_calls(&mut self, calls: &[ClientCall], frames: &mut Frames) {
        for call in calls {
            self.start_step(call.block.round, frames);
            self.make_available(call.block, &call.call.name, &call.call.arguments, frames);
            if let Some(id) = self.approvals.as_ref().and_then(|approvals| approvals.find(call)) {
                let approval_id = &id.to_string();
                frames.data(&Event::ToolApprovalRequest { approval_id, tool_call_id: &call.id });
            }
        }
    }

    /// Ends the parts of an attempt that is void.
    fn restart(&mut self, round: u32, frames: &mut Frames) {
        self.close_texts(frames);
        let is_void = |block: &BlockId, call: &Call| block.round == round && call.state != CallState::Ended;
        let void: Vec<_> =
            self.calls.iter().filter(|(block, call)| is_void(block, call)).map(|(block, _)| *block).collect();
        for block in void {
            self.refuse_input(block, "the model is called again", frames);
        }
        self.calls.retain(|block, _| block.round != round);
        frames.data(&Event::DataRestart { data: json!({"round": round}) });
    }

    fn finish_step(&mut self, frames: &mut Frames) {
        if self.step.take().is_some() {
            self.close_texts(frames);
            self.refuse_forming(frames);
            frames.data(&Event::FinishStep);
        }
    }

    /// Starts the step of a round. The tools of a round run after its end, so its step ends when a later one starts.
    fn start_step(&mut self, round: u32, frames: &mut Frames) {
        if self.step != Some(round) {
            self.finish_step(frames);
            self.step = Some(round);
            frames.data(&Event::StartStep);
        }
    }

    /// Ends the calls whose input never became complete.
    fn refuse_forming(&mut self, frames: &mut Frames) {
        let is_forming = |call: &Call| call.state == CallState::Forming;
        let forming: Vec<_> =
            self.calls.iter().filter(|(_, call)| is_forming(call)).map(|(block, _)| *block).collect();
        for block in forming {
            self.refuse_input(block, "the call is incomplete", frames);
        }
    }

    fn close_texts(&mut self, frames: &mut Frames) {
        let open: Vec<_> = self.texts.keys().copied().collect();
        open.into_iter().for_each(|block| self.close_text(block, frames));
    }

    fn make_available(&mut self, block: BlockId, name: &Text, arguments: &str, frames: &mut Frames) {
        let call =
            self.calls.entry(block).or_insert_with(|| Call { name: name.clone(), state: CallState::Forming });
        if call.state == CallState::Forming {
            call.state = CallState::Available;
            let (id, input) = (self.turn.id(block), content::arguments(arguments));
            frames.data(&Event::ToolInputAvailable {
                tool_call_id: &id,
                tool_name: name,
                input,
                dynamic: true,
            });
        }
    }

    fn end(&mut self, block: BlockId, result: &ToolResult, frames: &mut Frames) {
        let id = self.turn.id(block);
        if let Some(call) = self.calls.get_mut(&block) {
            call.state = CallState::Ended;
        }
        self.output(&id, result, frames);
    }

    fn output(&self, id: &str, result: &ToolResult, frames: &mut Frames) {
        match result.is_error {
            true => self.output_error(id, &result.text(), frames),
            false => frames.data(&Event::ToolOutputAvailable {
                tool_call_id: id,
                output: content::result(result),
                dynamic: true,
            }),
        }
    }

    /// Ends a call that never starts, with an error. A denial would need an approval: clients refuse one without.
    fn not_started(&mut self, event: &ToolEvent, result: &ToolResult, frames: &mut Frames) {
        let state = self.calls.get(&event.block).map(|call| call.state);
        if state != Some(CallState::Available) && self.turn.arguments(event.block).is_empty() {
            self.make_available(event.block, &event.name, "", frames);
        }
        match self.calls.get(&event.block).map(|call| call.state) {
            Some(CallState::Available) => self.end(event.block, result, frames),
            _ => self.refuse_input(event.block, &result.text(), frames),
        }
    }

    /// Ends a call whose input is not complete, or not JSON.
    fn refuse_input(&mut self, block: BlockId, error: &str, frames: &mut Frames) {
        let (id, arguments) = (self.turn.id(block), self.turn.arguments(block).to_owned());
        let Some(call) = self.calls.get_mut(&block) else { return };
        let was = std::mem::replace(&mut call.state, CallState::Ended);
        let (tool_name, input) = (call.name.clone(), content::arguments(&arguments));
        if was == CallState::Available {
            return self.output_error(&id, error, frames);
        }
        frames.data(&Event::ToolInputError {
            tool_call_id: &id,
            tool_name: &tool_name,
            input,
            error_text: error,
            dynamic: true,
        });
    }

    fn output_error(&self, id: &str, error_text: &str, frames: &mut Frames) {
        frames.data(&Event::ToolOutputError { tool_call_id: id, error_text, dynamic: true });
    }
}

/// The events of the stream. Clients up to 7.0.31 refuse unknown fields.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum Event<'a> {
    Start {
        message_id: &'a str,
    },
    StartStep,
    TextStart {
        id: &'a str,
    },
    TextDelta {
        id: &'a str,
        delta: &'a str,
    },
    TextEnd {
        id: &'a str,
    },
    ReasoningStart {
        id: &'a str,
    },
    ReasoningDelta {
        id: &'a str,
        delta: &'a str,
    },
    ReasoningEnd {
        id: &'a str,
    },
    ToolInputStart {
        tool_call_id: &'a str,
        tool_name: &'a str,
        dynamic: bool,
    },
    ToolInputDelta {
        tool_call_id: &'a str,
        input_text_delta: &'a str,
    },
    ToolInputAvailable {
        tool_call_id: &'a str,
        tool_name: &'a str,
        input: Value,
        dynamic: bool,
    },
    ToolInputError {
        tool_call_id: &'a str,
        tool_name: &'a str,
        input: Value,
        error_text: &'a str,
        dynamic: bool,
    },
    ToolApprovalRequest {
        approval_id: &'a str,
        tool_call_id: &'a str,
    },
    ToolOutputAvailable {
        tool_call_id: &'a str,
        output: Value,
        dynamic: bool,
    },
    ToolOutputError {
        tool_call_id: &'a str,
        error_text: &'a str,
        dynamic: bool,
    },
    ToolOutputDenied {
        tool_call_id: &'a str,
    },
    SourceUrl {
        source_id: &'a str,
        url: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    File {
        url: &'a str,
        media_type: &'a str,
    },
    DataRestart {
        data: Value,
    },
    DataIncomplete {
        data: Incomplete,
    },
    FinishStep,
    Finish {
        finish_reason: &'static str,
    },
    Error {
        error_text: &'a str,
    },
    Abort,
}

/// Returns the reason of the end of a message.
fn finish_reason(ending: Ending) -> &'static str {
    match ending {
        Ending::Whole => "stop",
        Ending::ClientCalls => "tool-calls",
        Ending::Length => "length",
        Ending::Filtered => "content-filter",
        Ending::Interrupted => "error",
        Ending::Limit => "other",
    }
}
