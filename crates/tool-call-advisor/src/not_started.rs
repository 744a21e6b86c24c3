//! `NotStarted`: the reason why a call does not run, its event and the text that the model reads.

use std::fmt;

use advisor_core::{
    BlockId, FinishReason, Limit, NotStartedReason, Text, ToolCall, ToolEvent, ToolEventKind, ToolResult,
};

/// The reason why a call is not started.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum NotStarted {
    /// A limit was reached.
    Limit(Limit),
    /// The limit on equal calls was reached for the first time: the model is told, and may go on.
    Repeated(Limit),
    /// A hook has left the call out. It counts for no limit.
    LeftOut,
    /// Another reason, with its text for the model.
    Other(NotStartedReason, Text),
}

impl NotStarted {
    /// The application, a policy or a person did not let the call run.
    pub(crate) fn denied(text: impl Into<Text>) -> Self {
        Self::Other(NotStartedReason::Denied, text.into())
    }

    /// The answer was cut off or stopped.
    pub(crate) fn cut_off(reason: &FinishReason) -> Self {
        let text = format!("the answer was cut off ({})", cut_by(reason).unwrap_or("stopped"));
        Self::Other(NotStartedReason::AnswerCutOff, text.into())
    }

    /// An error ended the turn.
    pub(crate) fn failed() -> Self {
        Self::Other(NotStartedReason::TurnFailed, "an error ended the turn".into())
    }

    /// The call was, or may have been, started before. The text says what to do.
    pub(crate) fn already_started(text: &'static str) -> Self {
        Self::Other(NotStartedReason::AlreadyStarted, text.into())
    }

    /// Returns the reason without its text, as tool events have it.
    pub(crate) fn reason(&self) -> NotStartedReason {
        match self {
            Self::Limit(_) | Self::Repeated(_) => NotStartedReason::Limit,
            Self::LeftOut => NotStartedReason::Denied,
            Self::Other(reason, _) => *reason,
        }
    }

    /// Returns the event of a call that does not start for this reason, with the result that the model reads.
    pub(crate) fn event(&self, block: BlockId, call: &ToolCall) -> ToolEvent {
        let (reason, text) = (self.reason(), self.to_string());
        let result = match reason {
            NotStartedReason::Denied => ToolResult::denied(call, text),
            _ => ToolResult::error(call, text),
        };
        let kind = ToolEventKind::NotStarted { reason, result };
        ToolEvent { block, call_id: call.id.clone(), name: call.name.clone(), kind }
    }
}

/// Writes the text that the model reads.
impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(limit @ Limit::SameCall { .. }) | Self::Repeated(limit) => {
                write!(f, "not started: {limit} was reached; go on in another way, or answer")
            }
            Self::Limit(limit) => write!(f, "not started: {limit} was reached"),
            Self::LeftOut => f.write_str("not started: the application left this call out"),
            Self::Other(NotStartedReason::UnknownTool | NotStartedReason::AlreadyStarted, text) => {
                f.write_str(text)
            }
            Self::Other(_, text) => write!(f, "not started: {text}"),
        }
    }
}

impl fmt::Debug for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(limit) => f.debug_tuple("Limit").field(limit).finish(),
            // What a person or a model wrote must not be logged.
            _ => f.write_str(self.reason().as_str()),
        }
    }
}

/// Returns the sentence that ends a turn for this reason, unless the application has another.
pub(crate) fn closing_text(reason: &FinishReason) -> String {
    match (reason, cut_by(reason)) {
        (FinishReason::Limit(limit), _) => format!("I stopped here: {limit} was reached."),
        (_, Some(cut)) => {
            format!("I stopped here: the answer was cut off ({cut}) before its tool calls could run.")
        }
        _ => String::from("I stopped here; my tool calls were not run."),
    }
}

/// Returns the reason why an answer was cut off, as readable text.
fn cut_by(reason: &FinishReason) -> Option<&'static str> {
    match reason {
        FinishReason::Length => Some("length limit"),
        FinishReason::ContentFilter => Some("content filter"),
        FinishReason::Refusal => Some("refusal"),
        FinishReason::Interrupted => Some("interrupted"),
        _ => None,
    }
}
