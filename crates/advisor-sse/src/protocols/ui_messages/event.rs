//! The events of the UI message stream of the AI SDK, as types that serialise.

use serde::Serialize;
use serde_json::Value;

use super::UiProfile;
use crate::shared::ending::{Ending, Incomplete};

/// The events of the stream. Clients up to 7.0.31 refuse unknown fields.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(super) enum Event<'a> {
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
        data: Restart,
    },
    DataIncomplete {
        data: Incomplete,
    },
    FinishStep,
    Finish {
        #[serde(skip_serializing_if = "Option::is_none")]
        finish_reason: Option<&'static str>,
    },
    Error {
        error_text: &'a str,
    },
    Abort,
}

#[derive(Serialize)]
pub(super) struct Restart {
    pub(super) round: u32,
}

impl Event<'_> {
    /// Returns the end of the message. The first profile has no reason.
    pub(super) fn finish(profile: UiProfile, ending: Ending) -> Self {
        let reason = match ending {
            Ending::Whole => "stop",
            Ending::ClientCalls => "tool-calls",
            Ending::Length => "length",
            Ending::Filtered => "content-filter",
            Ending::Interrupted => "error",
            Ending::Limit => "other",
        };
        Self::Finish { finish_reason: (profile >= UiProfile::V6).then_some(reason) }
    }
}
