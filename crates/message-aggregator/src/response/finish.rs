//! `FinishReason`, `Finish` and `Limit`; `vetoes_calls` marks the reasons that forbid tool runs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Text;

/// Reason for the end of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model finished its answer.
    Stop,
    /// The token limit of the request or of the model was reached; the answer is cut.
    Length,
    /// The model waits for tool results.
    ToolCalls,
    /// A filter of the provider stopped the answer.
    ContentFilter,
    /// The model refused.
    Refusal,
    /// The provider paused the answer and expects another request with the output so far: a round without results.
    Paused,
    /// Tools that return directly answered the user; one text block per result.
    ReturnDirect,
    /// A bound of the tool loop was reached.
    Limit(Limit),
    /// The model sent no content.
    Empty,
    /// An error, a cancellation or a drop ended the answer; it holds the output so far.
    Interrupted,
    /// An unknown reason, as the provider wrote it. It may have cut the answer anywhere.
    Other(Text),
}

impl FinishReason {
    /// Checks whether the reason means that the answer is cut off, so that none of its calls may run.
    ///
    /// Under an [unknown](Self::Other) reason those calls run whose end the wire marked. The others are incomplete
    /// ([`leaves_calls_whole`](Self::leaves_calls_whole)).
    #[must_use]
    pub fn vetoes_calls(&self) -> bool {
        matches!(self, Self::Length | Self::ContentFilter | Self::Refusal | Self::Interrupted)
    }

    /// Checks whether the reason is known to leave the calls before it whole, so that it ends those whose end the wire
    /// did not mark. An unknown reason does not.
    #[must_use]
    pub fn leaves_calls_whole(&self) -> bool {
        // No wildcard: whoever adds a reason decides.
        match self {
            Self::Stop
            | Self::ToolCalls
            | Self::Paused
            | Self::ReturnDirect
            | Self::Limit(_)
            | Self::Empty => true,
            Self::Length | Self::ContentFilter | Self::Refusal | Self::Interrupted | Self::Other(_) => false,
        }
    }
}

/// The bound of the tool loop that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// Rounds in one turn.
    Rounds(u32),
    /// Tool calls in one turn.
    Calls(u32),
    /// Calls of one tool in one turn.
    CallsPerTool {
        /// The name of the tool.
        tool: Text,
        /// The bound.
        limit: u32,
    },
    /// Calls of one tool with equal arguments in a row, in one turn, of which none has brought another result.
    SameCall {
        /// The name of the tool.
        tool: Text,
        /// The bound.
        limit: u32,
    },
    /// Wall time of one turn, in milliseconds.
    Time(u64),
    /// Another limit, in the words of the advisor that set it, such as "the budget of 10000 tokens".
    Other(Text),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rounds(limit) => write!(f, "the limit of {limit} rounds in one turn"),
            Self::Calls(limit) => write!(f, "the limit of {limit} tool calls in one turn"),
            Self::CallsPerTool { tool, limit } => {
                write!(f, "the limit of {limit} calls of the tool `{tool}` in one turn")
            }
            Self::SameCall { tool, limit } => {
                write!(
                    f,
                    "the limit of {limit} equal calls of the tool `{tool}` in a row without another result"
                )
            }
            Self::Time(limit) => write!(f, "the time limit of {limit} ms for one turn"),
            Self::Other(limit) => f.write_str(limit),
        }
    }
}

/// A finish reason and its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finish {
    /// The reason, in the terms of this project.
    pub reason: FinishReason,
    /// The provider's word for it, if sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_written: Option<Text>,
    /// Whether the reason was inferred from the content, because the provider's stream ended without one.
    #[serde(default)]
    pub inferred: bool,
}

impl Finish {
    /// Creates a reason that the provider wrote as `as_written`.
    pub fn written(reason: FinishReason, as_written: impl Into<Text>) -> Self {
        Self { reason, as_written: Some(as_written.into()), inferred: false }
    }

    /// Creates a reason that was inferred from the content, because the provider sent none.
    #[must_use]
    pub fn inferred(reason: FinishReason) -> Self {
        Self { reason, as_written: None, inferred: true }
    }
}

impl From<FinishReason> for Finish {
    fn from(reason: FinishReason) -> Self {
        Self { reason, as_written: None, inferred: false }
    }
}
