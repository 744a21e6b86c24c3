use advisor_core::{Message, Text, ToolCall, ToolResult};

use crate::{NOT_STARTED, OUTCOME_UNKNOWN};

/// The calls of one answer and the results they have got so far.
///
/// Ids need not be unique, not even within an answer: each result goes to the first call of its id that
/// has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenCalls {
    calls: Vec<OpenCall>,
    /// No tool can have been started for any of them.
    not_started: bool,
}

#[derive(Debug, Clone)]
struct OpenCall {
    id: Text,
    name: Text,
    result: Option<Message>,
}

impl OpenCalls {
    /// The calls of an answer; none for other messages.
    pub(crate) fn of(message: &Message) -> Self {
        let open = |call: &ToolCall| OpenCall { id: call.id.clone(), name: call.name.clone(), result: None };
        Self { calls: message.tool_calls().map(open).collect(), not_started: false }
    }

    /// The same calls, of which none has been started yet.
    pub(crate) fn not_started(self) -> Self {
        Self { not_started: true, ..self }
    }

    /// From now on, tools may be running for them.
    pub(crate) fn start(&mut self) {
        self.not_started = false;
    }

    /// Whether these are the calls of this answer, by their ids.
    pub(crate) fn are_those_of(&self, message: &Message) -> bool {
        self.calls.iter().map(|call| &call.id).eq(message.tool_calls().map(|call| &call.id))
    }

    /// Takes a tool message for the call it answers. One that answers none of them is refused.
    pub(crate) fn accept(&mut self, message: &Message) -> bool {
        let Some(result) = message.tool_result() else { return false };
        let waiting = |call: &&mut OpenCall| call.id == result.call_id && call.result.is_none();
        let Some(call) = self.calls.iter_mut().find(waiting) else { return false };
        call.result = Some(message.clone());
        true
    }

    /// Whether a tool message would be accepted.
    pub(crate) fn waits_for(&self, message: &Message) -> bool {
        let Some(result) = message.tool_result() else { return false };
        self.calls.iter().any(|call| call.id == result.call_id && call.result.is_none())
    }

    /// Whether any call has no result.
    pub(crate) fn is_waiting(&self) -> bool {
        self.calls.iter().any(|call| call.result.is_none())
    }

    /// Error results for the calls that have none.
    pub(crate) fn missing(&self) -> Vec<Message> {
        let missing = self.calls.iter().filter(|call| call.result.is_none());
        missing.map(|call| call.without_result(self.not_started)).collect()
    }

    /// All results in call order; those that are missing are made. Nothing is open afterwards.
    pub(crate) fn settle(&mut self) -> impl Iterator<Item = Message> {
        let Self { calls, not_started } = std::mem::take(self);
        calls
            .into_iter()
            .map(move |call| call.result.clone().unwrap_or_else(|| call.without_result(not_started)))
    }
}

impl OpenCall {
    fn without_result(&self, not_started: bool) -> Message {
        let call = ToolCall::new(self.id.clone(), self.name.clone(), "");
        Message::tool(ToolResult::error(&call, if not_started { NOT_STARTED } else { OUTCOME_UNKNOWN }))
    }
}
