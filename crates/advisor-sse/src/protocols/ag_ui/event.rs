//! The events of AG-UI, as types that serialise.

use advisor_core::Text;
use serde::Serialize;
use serde_json::{Value, json};

use crate::ApprovalId;

/// An event of the protocol.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(super) enum Event<'a> {
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
        outcome: Option<Outcome>,
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
    StateSnapshot {
        snapshot: &'a Value,
    },
    Custom {
        name: &'static str,
        value: Value,
    },
}

/// The outcome of a run that waits for a person.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Outcome {
    Interrupt { interrupts: Vec<Interrupt> },
}

/// A request for the approval of a call.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Interrupt {
    id: String,
    reason: &'static str,
    message: String,
    tool_call_id: Text,
    /// The schema of the answer's payload.
    response_schema: Value,
}

impl Outcome {
    /// Returns the outcome of a run that ends with these interrupts; `None` without any.
    pub(super) fn new(interrupts: Vec<Interrupt>) -> Option<Self> {
        (!interrupts.is_empty()).then_some(Self::Interrupt { interrupts })
    }
}

impl Interrupt {
    pub(super) fn new(id: &ApprovalId, tool: &str) -> Self {
        let response_schema = json!({
            "type": "object",
            "properties": {
                "approved": {"type": "boolean"},
                "reason": {"type": "string"},
                "editedArgs": {"type": "object"},
            },
            "required": ["approved"],
            "additionalProperties": false,
        });
        Self {
            id: id.to_string(),
            reason: "tool_call",
            message: format!("May `{tool}` run?"),
            tool_call_id: id.call().into(),
            response_schema,
        }
    }
}
