//! `ParserSettings`, `OnCut` and `OnUnknownTool`.

use super::event::CallEnd;
use super::limits::ParserLimits;

/// The policy for a call that the end of the answer cuts off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "it is complete or not")]
pub enum OnCut {
    /// It is incomplete and never runs.
    #[default]
    Incomplete,
    /// It counts as complete, with the text so far.
    Complete,
}

impl OnCut {
    /// Returns the end of a call that is cut off.
    pub(super) fn end(self) -> CallEnd {
        match self {
            Self::Incomplete => CallEnd::Cut,
            Self::Complete => CallEnd::AssumedComplete,
        }
    }
}

/// The policy for a call of a tool that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "it is a call or text")]
pub enum OnUnknownTool {
    /// It is a call. The tool loop answers it with an error that the model reads.
    Call,
    /// It is text.
    Text,
}

/// Settings of a [`TextCallParser`](crate::TextCallParser).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ParserSettings {
    /// The policy for calls that the end of the answer cuts off.
    pub on_cut: OnCut,
    /// The policy for calls of unknown tools. `None`: in JSON they are text, since other objects look the same. In
    /// other formats they are calls.
    pub on_unknown_tool: Option<OnUnknownTool>,
    /// Bounds.
    pub limits: ParserLimits,
}

impl ParserSettings {
    /// Sets the policy for calls that the end of the answer cuts off.
    #[must_use]
    pub fn with_on_cut(self, on_cut: OnCut) -> Self {
        Self { on_cut, ..self }
    }

    /// Sets the policy for calls of unknown tools.
    #[must_use]
    pub fn with_on_unknown_tool(self, on_unknown_tool: OnUnknownTool) -> Self {
        Self { on_unknown_tool: Some(on_unknown_tool), ..self }
    }

    /// Sets the bounds.
    #[must_use]
    pub fn with_limits(self, limits: ParserLimits) -> Self {
        Self { limits, ..self }
    }
}
