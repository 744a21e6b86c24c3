//! `UnrunCall`: a call that does not run, the reason, and the error result that answers it.

use advisor_core::{
    BlockId, ChatResponse, Chunk, NotStartedReason, Text, ToolCall, ToolEvent, ToolEventKind, ToolResult,
};

/// A call that does not run, and the error result that answers it.
pub(crate) struct UnrunCall {
    pub(crate) block: BlockId,
    pub(crate) reason: NotStartedReason,
    pub(crate) result: ToolResult,
}

impl UnrunCall {
    /// Returns a call that does not run for this reason. `text` is for the model.
    pub(crate) fn new(
        block: BlockId,
        call: &ToolCall,
        reason: NotStartedReason,
        text: impl Into<Text>,
    ) -> Self {
        Self { block, reason, result: unrun_result(call, reason, text) }
    }

    /// Returns all calls of an answer, none of which runs for this reason. `text` is for the model.
    pub(crate) fn all_of(answer: &ChatResponse, reason: NotStartedReason, text: &str) -> Vec<Self> {
        let unrun = answer.tool_calls();
        unrun.map(|(block, call)| Self::new(block, call, reason, text)).collect()
    }

    /// Returns the event of this call.
    pub(crate) fn into_event(self) -> ToolEvent {
        let Self { block, reason, result } = self;
        let (call_id, name) = (result.call_id.clone(), result.name.clone());
        ToolEvent::new(block, call_id, name, ToolEventKind::NotStarted { reason, result })
    }

    /// Returns the chunk with the event of this call.
    pub(crate) fn into_chunk(self) -> Chunk {
        Chunk::Tool(Box::new(self.into_event()))
    }
}

/// Returns the result of a call that does not run for this reason. `text` is for the model.
pub(crate) fn unrun_result(call: &ToolCall, reason: NotStartedReason, text: impl Into<Text>) -> ToolResult {
    match reason {
        NotStartedReason::Denied => ToolResult::denied(call, text),
        _ => ToolResult::error(call, text),
    }
}
