//! `AgUi`: encodes a turn as the events of AG-UI.

use std::collections::BTreeMap;

use advisor_core::{
    BlockDelta, BlockHead, BlockId, BlockKind, Chunk, Text, ToolCall, ToolEvent, ToolEventKind, ToolResult,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::encoder::Encoder;
use crate::turn::{ClientCall, Ending, Turn};
use crate::{ApprovalId, Approvals, Failure, Frames};

/// The events of AG-UI, in the order that its verifier demands.
///
/// - A round is a step, `round 1` and so on. The tools of a round run in its step.
/// - A failed tool has its error text as result. A call without a result is one that the client has to run, or one that a
///   person has to approve. The outcome of the run is an interrupt then, see [`with_approvals`](Self::with_approvals).
/// - Custom events: `attempt_restarted {round}`, `citation`, `media`, `tool_progress {toolCallId, part}`, `usage`.
/// - The result of a run whose answer is cut is `{"incomplete": {reason, message}}`. The reason is `length`,
///   `content_filter`, `interrupted` or `limit`.
/// - Not written are `STATE_*`, `MESSAGES_SNAPSHOT`, `ACTIVITY_*`, `RAW` and `REASONING_ENCRYPTED_VALUE`.
#[derive(Debug)]
pub struct AgUi {
    thread_id: Text,
    run_id: Text,
    turn: Turn,
    step: Option<u32>,
    open: BTreeMap<BlockId, BlockKind>,
    /// The calls that the client knows.
    announced: BTreeMap<BlockId, Text>,
    approvals: Option<Approvals>,
}

impl AgUi {
    /// Creates the encoder of a run in a thread; the ids are those that the client sent.
    pub fn new(thread_id: impl Into<Text>, run_id: impl Into<Text>) -> Self {
        Self {
            thread_id: thread_id.into(),
            run_id: run_id.into(),
            turn: Turn::default(),
            step: None,
            open: BTreeMap::new(),
            announced: BTreeMap::new(),
            approvals: None,
        }
    }

    /// Asks the client for approvals of these calls: each is an interrupt of reason `tool_call`, whose answer has the payload
    /// `{approved, reason, editedArgs}`, with other arguments for an approved call. By default, it asks for none.
    #[must_use]
    pub fn with_approvals(self, approvals: Approvals) -> Self {
        Self { approvals: Some(approvals), ..self }
    }

    /// Makes the ids of the run's calls end so. A client finds a call among those of all runs of the thread, and models
    /// repeat ids.
    #[must_use]
    pub fn with_call_suffix(mut self, suffix: impl Into<Text>) -> Self {
        self.turn.set_call_suffix(suffix.into());
        self
    }

    /// Writes the result of a decided call. The call is one of an earlier run, and the client has its message.
    pub fn earlier_result(&mut self, call_id: &str, result: &ToolResult, frames: &mut Frames) {
        self.result(call_id, result, frames);
    }

    /// Returns the outcome of a run that waits for a person; `None` of another one.
    fn outcome(&self, calls: &[ClientCall]) -> Option<Value> {
        let asked =
            |call: &ClientCall| Some(interrupt(&self.approvals.as_ref()?.find(call)?, &call.call.name));
        let interrupts: Vec<_> = calls.iter().filter_map(asked).collect();
        (!interrupts.is_empty()).then(|| json!({"type": "interrupt", "interrupts": interrupts}))
    }

    fn message_id(&self, block: BlockId) -> String {
        format!("{}:{}", self.run_id, self.turn.part_id(block))
    }

    fn start_step(&mut self, round: u32, frames: &mut Frames) {
        if self.step != Some(round) {
            self.finish_step(frames);
            self.step = Some(round);
            frames.data(&Event::StepStarted { step_name: &format!("round {round}") });
        }
    }

    fn finish_step(&mut self, frames: &mut Frames) {
        self.close_all(frames);
        if let Some(round) = self.step.take() {
            frames.data(&Event::StepFinished { step_name: &format!("round {round}") });
        }
    }

    fn open(&mut self, block: BlockId, head: &BlockHead, frames: &mut Frames) {
        self.start_step(block.round, frames);
        let message_id = &self.message_id(block);
        match head.kind {
            BlockKind::Text | BlockKind::Refusal => {
                frames.data(&Event::TextMessageStart { message_id, role: "assistant" });
            }
            BlockKind::Reasoning => {
                frames.data(&Event::ReasoningStart { message_id });
                frames.data(&Event::ReasoningMessageStart { message_id, role: "reasoning" });
            }
            BlockKind::ToolCall => {
                let name = head.call.as_ref().map(|call| call.name.clone()).unwrap_or_default();
                let id = self.turn.id(block);
                frames.data(&Event::ToolCallStart { tool_call_id: &id, tool_call_name: &name });
                self.announced.insert(block, name);
            }
            _ => return,
        }
        self.open.insert(block, head.kind);
    }

    fn delta(&self, block: BlockId, delta: &BlockDelta, frames: &mut Frames) {
        let message_id = &self.message_id(block);
        match delta {
            BlockDelta::Text(text) | BlockDelta::Refusal(text) if !text.is_empty() => {
                frames.data(&Event::TextMessageContent { message_id, delta: text });
            }
            BlockDelta::Reasoning(text) if !text.is_empty() => {
                frames.data(&Event::ReasoningMessageContent { message_id, delta: text });
            }
            BlockDelta::Arguments(text) if !text.is_empty() => {
                frames.data(&Event::ToolCallArgs { tool_call_id: &self.turn.id(block), delta: text });
            }
            BlockDelta::Media(media) => frames.data(&Event::Custom { name: "media", value: json!(media) }),
            BlockDelta::Citation(citation) => {
                frames.data(&Event::Custom { name: "citation", value: json!(citation) });
            }
            _ => {}
        }
    }

    fn close(&mut self, block: BlockId, frames: &mut Frames) {
        let message_id = &self.message_id(block);
        match self.open.remove(&block) {
            Some(BlockKind::Reasoning) => {
                frames.data(&Event::ReasoningMessageEnd { message_id });
                frames.data(&Event::ReasoningEnd { message_id });
            }
            Some(BlockKind::ToolCall) => {
                frames.data(&Event::ToolCallEnd { tool_call_id: &self.turn.id(block) })
            }
            Some(_) => frames.data(&Event::TextMessageEnd { message_id }),
            None => {}
        }
    }

    fn close_all(&mut self, frames: &mut Frames) {
        let open: Vec<_> = self.open.keys().copied().collect();
        open.into_iter().for_each(|block| self.close(block, frames));
    }

    /// Writes a call whose block was not shown.
    fn announce(&mut self, block: BlockId, name: &Text, arguments: &str, frames: &mut Frames) {
        if self.announced.contains_key(&block) {
            return;
        }
        self.announced.insert(block, name.clone());
        let tool_call_id = &self.turn.id(block);
        frames.data(&Event::ToolCallStart { tool_call_id, tool_call_name: name });
        if !arguments.is_empty() {
            frames.data(&Event::ToolCallArgs { tool_call_id, delta: arguments });
        }
        frames.data(&Event::ToolCallEnd { tool_call_id });
    }

    fn tool(&mut self, event: &ToolEvent, frames: &mut Frames) {
        self.start_step(event.block.round, frames);
        let id = &self.turn.id(event.block);
        match &event.kind {
            ToolEventKind::Started { arguments } => {
                self.announce(event.block, &event.name, arguments, frames)
            }
            ToolEventKind::Progress { part } => {
                let value = json!({"toolCallId": id, "part": part});
                frames.data(&Event::Custom { name: "tool_progress", value });
            }
            ToolEventKind::Finished { result } | ToolEventKind::NotStarted { result, .. } => {
                self.announce(event.block, &event.name, "", frames);
                // An error within the call leaves its block open.
                self.close(event.block, frames);
                self.result(id, result, frames);
            }
            _ => {}
        }
    }

    fn result(&self, id: &str, result: &ToolResult, frames: &mut Frames) {
        let (message_id, content) = (&format!("{}:result:{id}", self.run_id), &result.text());
        frames.data(&Event::ToolCallResult { message_id, tool_call_id: id, content, role: "tool" });
    }

    fn client_call(&mut self, call: &ClientCall, frames: &mut Frames) {
        let ToolCall { name, arguments, .. } = &call.call;
        if !self.announced.contains_key(&call.block) {
            self.start_step(call.block.round, frames);
            self.announce(call.block, name, arguments, frames);
        }
    }

    fn finish_run(&self, ending: Ending, calls: &[ClientCall], frames: &mut Frames) {
        let result = ending.incomplete().map(|incomplete| json!({"incomplete": incomplete}));
        let outcome = self.outcome(calls);
        frames.data(&Event::RunFinished {
            thread_id: &self.thread_id,
            run_id: &self.run_id,
            result,
            outcome,
        });
    }
}

impl Encoder for AgUi {
    fn begin(&mut self, frames: &mut Frames) {
        frames.data(&Event::RunStarted { thread_id: &self.thread_id, run_id: &self.run_id });
    }

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        self.turn.note(chunk);
        match chunk {
            Chunk::Opened { block, head } => self.open(*block, head, frames),
            Chunk::Delta { block, delta } => self.delta(*block, delta, frames),
            Chunk::Closed { block, .. } => self.close(*block, frames),
            Chunk::Tool(event) => self.tool(event, frames),
            Chunk::Usage { round, usage } => {
                let value = json!({"round": round, "usage": usage});
                frames.data(&Event::Custom { name: "usage", value });
            }
            Chunk::AttemptRestarted { round } => {
                self.close_all(frames);
                self.announced.retain(|block, _| block.round != *round);
                let value = json!({"round": round});
                frames.data(&Event::Custom { name: "attempt_restarted", value });
            }
            Chunk::Completed(response) => {
                let calls = self.turn.client_calls(response);
                calls.iter().for_each(|call| self.client_call(call, frames));
                self.finish_step(frames);
                self.finish_run(Ending::new(&response.finish.reason, !calls.is_empty()), &calls, frames);
            }
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        frames.data(&Event::RunError { message: failure.message, code: failure.code });
    }
}

/// An event of the protocol.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
enum Event<'a> {
    RunStarted {
        thread_id: &'a str,
        run_id: &'a str,
    },
    RunFinished {
        thread_id: &'a str,
        run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<Value>,
    },
    RunError {
        message: &'a str,
        code: &'a str,
    },
    StepStarted {
        step_name: &'a str,
    },
    StepFinished {
        step_name: &'a str,
    },
    TextMessageStart {
        message_id: &'a str,
        role: &'static str,
    },
    TextMessageContent {
        message_id: &'a str,
        delta: &'a str,
    },
    TextMessageEnd {
        message_id: &'a str,
    },
    ReasoningStart {
        message_id: &'a str,
    },
    ReasoningMessageStart {
        message_id: &'a str,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: &'a str,
        delta: &'a str,
    },
    ReasoningMessageEnd {
        message_id: &'a str,
    },
    ReasoningEnd {
        message_id: &'a str,
    },
    ToolCallStart {
        tool_call_id: &'a str,
        tool_call_name: &'a str,
    },
    ToolCallArgs {
        tool_call_id: &'a str,
        delta: &'a str,
    },
    ToolCallEnd {
        tool_call_id: &'a str,
    },
    ToolCallResult {
        message_id: &'a str,
        tool_call_id: &'a str,
        content: &'a str,
        role: &'static str,
    },
    Custom {
        name: &'static str,
        value: Value,
    },
}

/// Returns the request for the approval of a call. `responseSchema` is that of the answer's payload.
fn interrupt(id: &ApprovalId, tool: &str) -> Value {
    json!({
        "id": id.to_string(),
        "reason": "tool_call",
        "message": format!("May `{tool}` run?"),
        "toolCallId": id.call(),
        "responseSchema": {
            "type": "object",
            "properties": {
                "approved": {"type": "boolean"},
                "reason": {"type": "string"},
                "editedArgs": {"type": "object"},
            },
            "required": ["approved"],
            "additionalProperties": false,
        },
    })
}
