//! `ToolEvent`, `ToolEventKind` and `NotStartedReason`: the start, progress and end of a tool, or the reason why a
//! call does not start.

use serde::{Deserialize, Serialize};

use crate::{BlockId, Part, Text, ToolResult};

/// An event of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolEvent {
    /// The block of the call.
    pub block: BlockId,
    /// The id of the call.
    pub call_id: Text,
    /// The name of the tool.
    pub name: Text,
    /// The kind of the event.
    #[serde(rename = "event")]
    pub kind: ToolEventKind,
}

impl ToolEvent {
    /// Creates an event of the call in `block`.
    pub fn new(block: BlockId, call_id: Text, name: Text, kind: ToolEventKind) -> Self {
        Self { block, call_id, name, kind }
    }

    /// Returns the result of the call, if this event ends it.
    #[must_use]
    pub fn result(&self) -> Option<&ToolResult> {
        match &self.kind {
            ToolEventKind::Finished(result) | ToolEventKind::NotStarted { result, .. } => Some(result),
            ToolEventKind::Started { .. } | ToolEventKind::Progress(_) => None,
        }
    }
}

/// The kinds of [`ToolEvent`].
///
/// A call that runs has `Started`, any number of `Progress`, then `Finished`. A call that never starts has
/// `NotStarted` alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolEventKind {
    /// The tool starts.
    Started {
        /// The arguments as the model wrote them.
        arguments: Text,
    },
    /// The tool reports progress.
    #[serde(with = "part_field")]
    Progress(Part),
    /// The tool has returned a result, or it failed, panicked or took too long.
    #[serde(with = "result_field")]
    Finished(ToolResult),
    /// The call does not start.
    NotStarted {
        /// The reason.
        reason: NotStartedReason,
        /// The error result that the model reads in place of a result.
        result: ToolResult,
    },
}

/// The reason why a call did not start, without content of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotStartedReason {
    /// No tool of the request has this name.
    UnknownTool,
    /// The call is incomplete: its answer was cut off within it, or it is unclear which fragments belong to it.
    IncompleteCall,
    /// The arguments are not JSON, or do not fit the tool's schema.
    InvalidArguments,
    /// The application left the call out or ended the turn.
    Denied,
    /// A limit of the tool loop was reached.
    Limit,
    /// The answer was cut off, filtered or refused.
    AnswerCutOff,
    /// The call was, or may have been, started before, and must not run twice.
    AlreadyStarted,
    /// An error ended the turn.
    TurnFailed,
    /// A reason that was read from JSON and that this version does not know.
    #[serde(other)]
    Other,
}

impl NotStartedReason {
    /// Returns the reason as one word, such as `unknown_tool`, for traces and counters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::IncompleteCall => "incomplete_call",
            Self::InvalidArguments => "invalid_arguments",
            Self::Denied => "denied",
            Self::Limit => "limit",
            Self::AnswerCutOff => "answer_cut_off",
            Self::AlreadyStarted => "already_started",
            Self::TurnFailed => "turn_failed",
            Self::Other => "other",
        }
    }
}

/// Writes and reads the content of a variant as a field with a name.
macro_rules! field {
    ($module:ident, $field:ident: $type:ty) => {
        mod $module {
            use serde::{Deserialize, Deserializer, Serialize, Serializer};

            #[derive(Serialize)]
            struct Written<'a> {
                $field: &'a $type,
            }

            #[derive(Deserialize)]
            struct Read {
                $field: $type,
            }

            pub(super) fn serialize<S: Serializer>($field: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                Written { $field }.serialize(serializer)
            }

            pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                Read::deserialize(deserializer).map(|read| read.$field)
            }
        }
    };
}

field!(part_field, part: crate::Part);
field!(result_field, result: crate::ToolResult);
