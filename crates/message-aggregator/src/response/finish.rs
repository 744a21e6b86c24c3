use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Text;

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The token limit of the request or of the model was reached; the answer is cut.
    Length,
    /// The model waits for tool results.
    ToolCalls,
    /// A filter of the provider stopped the answer.
    ContentFilter,
    /// The model refused.
    Refusal,
    /// The provider wants to be asked again with what there is so far: a round without results.
    Paused,
    /// Tools whose results go straight to the user answered; one text block per result.
    ReturnDirect,
    /// A bound of the tool loop was reached.
    Limit(Limit),
    /// The model sent nothing at all.
    Empty,
    /// The answer was cut by an error, a cancellation or a drop; it holds what came before.
    Interrupted,
    /// A reason this version does not know, as the provider wrote it.
    Other(Text),
}

impl FinishReason {
    /// Whether it says that the answer is not whole: no call of it is to be run.
    #[must_use]
    pub fn vetoes_calls(&self) -> bool {
        matches!(self, Self::Length | Self::ContentFilter | Self::Refusal | Self::Interrupted)
    }
}

/// Which bound of the tool loop was reached.
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
        /// The tool.
        tool: Text,
        /// The bound.
        limit: u32,
    },
    /// Wall time of one turn, in milliseconds.
    Time(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rounds(limit) => write!(f, "the limit of {limit} rounds in one turn"),
            Self::Calls(limit) => write!(f, "the limit of {limit} tool calls in one turn"),
            Self::CallsPerTool { tool, limit } => {
                write!(f, "the limit of {limit} calls of the tool `{tool}` in one turn")
            }
            Self::Time(limit) => write!(f, "the time limit of {limit} ms for one turn"),
        }
    }
}

/// A finish reason with what is known about where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finish {
    /// The reason, in this project's words.
    pub reason: FinishReason,
    /// The provider's own word, where it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_written: Option<Text>,
    /// The provider ended its stream without a reason, and this one was inferred from the content.
    #[serde(default)]
    pub inferred: bool,
}

impl Finish {
    /// A reason that the provider wrote as `as_written`.
    pub fn written(reason: FinishReason, as_written: impl Into<Text>) -> Self {
        Self { reason, as_written: Some(as_written.into()), inferred: false }
    }

    /// A reason inferred from the content because the provider sent none.
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
