use advisor_core::{Message, Text, ToolCall, ToolResult};

use crate::OUTCOME_UNKNOWN;

/// The calls of one answer and the results they have got so far.
///
/// Ids need not be unique, not even within an answer: each result goes to the first call of its id that
/// has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenCalls(Vec<OpenCall>);

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
        Self(message.tool_calls().map(open).collect())
    }

    /// Takes a tool message for the call it answers. One that answers none of them is refused.
    pub(crate) fn accept(&mut self, message: &Message) -> bool {
        let Some(result) = message.tool_result() else { return false };
        let waiting = |call: &&mut OpenCall| call.id == result.call_id && call.result.is_none();
        let Some(call) = self.0.iter_mut().find(waiting) else { return false };
        call.result = Some(message.clone());
        true
    }

    /// Whether a tool message would be accepted.
    pub(crate) fn waits_for(&self, message: &Message) -> bool {
        let Some(result) = message.tool_result() else { return false };
        self.0.iter().any(|call| call.id == result.call_id && call.result.is_none())
    }

    /// Whether any call has no result.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.iter().any(|call| call.result.is_none())
    }

    /// Error results for the calls that have none.
    pub(crate) fn missing(&self) -> Vec<Message> {
        self.0.iter().filter(|call| call.result.is_none()).map(OpenCall::interrupted).collect()
    }

    /// All results in call order; those that are missing are made. Nothing is open afterwards.
    pub(crate) fn settle(&mut self) -> impl Iterator<Item = Message> {
        std::mem::take(&mut self.0)
            .into_iter()
            .map(|call| call.result.clone().unwrap_or_else(|| call.interrupted()))
    }
}

impl OpenCall {
    fn interrupted(&self) -> Message {
        let call = ToolCall::new(self.id.clone(), self.name.clone(), "");
        Message::tool(ToolResult::error(&call, OUTCOME_UNKNOWN))
    }
}
