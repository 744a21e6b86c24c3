//! `ClosingTexts` and `NotStarted`: replaceable closing sentences and reasons for unstarted calls.

use std::fmt;
use std::sync::Arc;

use advisor_core::{
    BlockId, FinishReason, Limit, NotStartedReason, Text, ToolCall, ToolEvent, ToolEventKind, ToolResult,
};

/// The sentences that the loop writes itself, in English unless the application replaces them.
///
/// If a limit or a cut-off answer ends a turn, the loop adds an assistant message, shown as the answer
/// ([`with_closing`](Self::with_closing)). Calls that were not started are answered with the reason
/// ([`with_not_started`](Self::with_not_started)). Error results of calls that failed are not among these texts.
///
/// # Example
/// ```
/// use tool_call_advisor::{ClosingTexts, ToolCallAdvisor};
///
/// let texts = ClosingTexts::new()
///     .with_closing(|reason| format!("Hier ist Schluss: {reason:?}."))
///     .with_done("Fertig.");
/// let advisor = ToolCallAdvisor::builder().closing_texts(texts).build()?;
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[must_use]
#[derive(Clone)]
pub struct ClosingTexts {
    closing: Arc<dyn Fn(&FinishReason) -> String + Send + Sync>,
    not_started: Arc<dyn Fn(&NotStarted) -> String + Send + Sync>,
    done: Text,
}

/// The default text for a direct result without text and media.
const DONE: &str = "Done.";

/// The reason why a call was not started.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotStarted {
    /// A limit was reached.
    Limit(Limit),
    /// The limit on equal calls was reached for the first time: the model is told, and may go on.
    Repeated(Limit),
    /// The answer was cut off or stopped, for this reason.
    CutOff(FinishReason),
    /// A hook ended the turn.
    ByApplication,
    /// A hook removed the call.
    LeftOut,
    /// A policy or a hook denied the call, for this reason.
    Forbidden(Text),
    /// A person has approved the call, but the definition of its tool has changed since the question.
    Redefined,
    /// An error ended the turn.
    Failed,
    /// No tool of the request has this name.
    UnknownTool(Text),
    /// The call is incomplete.
    Incomplete,
    /// The arguments are no JSON, do not fit the tool, or could not be checked: this text says why.
    InvalidArguments(Text),
    /// The call was, or may have been, started before. The text says what to do.
    AlreadyStarted(&'static str),
}

impl NotStarted {
    /// Returns the reason without its data, as tool events have it.
    #[must_use]
    pub fn reason(&self) -> NotStartedReason {
        match self {
            Self::Limit(_) | Self::Repeated(_) => NotStartedReason::Limit,
            Self::CutOff(_) => NotStartedReason::AnswerCutOff,
            Self::ByApplication | Self::LeftOut | Self::Forbidden(_) | Self::Redefined => {
                NotStartedReason::Denied
            }
            Self::Failed => NotStartedReason::TurnFailed,
            Self::UnknownTool(_) => NotStartedReason::UnknownTool,
            Self::Incomplete => NotStartedReason::IncompleteCall,
            Self::InvalidArguments(_) => NotStartedReason::InvalidArguments,
            Self::AlreadyStarted(_) => NotStartedReason::AlreadyStarted,
        }
    }

    /// Returns the event of a call that does not start for this reason, with the result that the model reads.
    pub(crate) fn event(&self, block: BlockId, call: &ToolCall, texts: &ClosingTexts) -> ToolEvent {
        let (reason, text) = (self.reason(), texts.not_started(self));
        let result = match reason {
            NotStartedReason::Denied => ToolResult::denied(call, text),
            _ => ToolResult::error(call, text),
        };
        let kind = ToolEventKind::NotStarted { reason, result };
        ToolEvent::new(block, call.id.clone(), call.name.clone(), kind)
    }
}

impl ClosingTexts {
    /// Creates the default texts.
    pub fn new() -> Self {
        Self {
            closing: Arc::new(closing),
            not_started: Arc::new(NotStarted::to_string),
            done: Text::from(DONE),
        }
    }

    /// Sets the sentence that ends a turn, by its finish reason. It is shown, stored and sent.
    ///
    /// If it is blank, nothing is shown and the response is empty; see [`ClosingTexts::silent`].
    pub fn with_closing(self, text: impl Fn(&FinishReason) -> String + Send + Sync + 'static) -> Self {
        Self { closing: Arc::new(text), ..self }
    }

    /// Sets the text that the model reads in place of a result. If it is blank, the default text is used.
    ///
    /// It is not asked for what is wrong with a call, or for a call that was started before: the model has to read that.
    pub fn with_not_started(self, text: impl Fn(&NotStarted) -> String + Send + Sync + 'static) -> Self {
        Self { not_started: Arc::new(text), ..self }
    }

    /// Sets the text for a direct result without text and media. If it is blank, the default text is used.
    pub fn with_done(self, text: impl Into<Text>) -> Self {
        Self { done: text.into(), ..self }
    }

    /// Hides the closing sentence: the application chooses a text by the finish reason.
    ///
    /// The response then has no block. The stored transcript still ends with an assistant message, the default
    /// sentence. Some providers refuse a transcript that ends with results, and the model should know the reason
    /// for the end. The message is [hidden](advisor_core::Message::hidden), so submitting the turn again does not
    /// show it either.
    pub fn silent(self) -> Self {
        self.with_closing(|_| String::new())
    }

    /// Returns the closing sentence, and whether it is shown.
    pub(crate) fn closing(&self, reason: &FinishReason) -> (String, bool) {
        let text = (self.closing)(reason);
        if text.trim().is_empty() { (closing(reason), false) } else { (text, true) }
    }

    pub(crate) fn not_started(&self, why: &NotStarted) -> String {
        let text = match why.reason() {
            NotStartedReason::UnknownTool
            | NotStartedReason::IncompleteCall
            | NotStartedReason::InvalidArguments
            | NotStartedReason::AlreadyStarted => String::new(),
            _ => (self.not_started)(why),
        };
        if text.trim().is_empty() { why.to_string() } else { text }
    }

    pub(crate) fn done(&self) -> &str {
        if self.done.trim().is_empty() { DONE } else { &self.done }
    }
}

impl Default for ClosingTexts {
    fn default() -> Self {
        Self::new()
    }
}

fn closing(reason: &FinishReason) -> String {
    match (reason, cut_by(reason)) {
        (FinishReason::Limit(limit), _) => format!("I stopped here: {limit} was reached."),
        (_, Some(cut)) => {
            format!("I stopped here: the answer was cut off ({cut}) before its tool calls could run.")
        }
        _ => String::from("I stopped here; my tool calls were not run."),
    }
}

/// Writes the text that the model reads by default.
impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !matches!(self, Self::UnknownTool(_) | Self::AlreadyStarted(_)) {
            f.write_str("not started: ")?;
        }
        match self {
            Self::Limit(limit @ Limit::SameCall { .. }) | Self::Repeated(limit) => {
                write!(f, "{limit} was reached; go on in another way, or answer")
            }
            Self::Limit(limit) => write!(f, "{limit} was reached"),
            Self::CutOff(reason) => {
                write!(f, "the answer was cut off ({})", cut_by(reason).unwrap_or("stopped"))
            }
            Self::ByApplication => f.write_str("the application ended the turn"),
            Self::LeftOut => f.write_str("the application left this call out"),
            Self::Forbidden(reason) => f.write_str(reason),
            Self::Redefined => f.write_str(
                "the call was approved, but the definition of the tool has changed since; read the new one, and call the \
                 tool again if it still fits",
            ),
            Self::Failed => f.write_str("an error ended the turn"),
            Self::UnknownTool(name) => {
                write!(f, "there is no tool called `{name}`; call one of those you were given")
            }
            Self::Incomplete => f.write_str("the call is incomplete; make it again, by itself"),
            Self::InvalidArguments(why) => f.write_str(why),
            Self::AlreadyStarted(text) => f.write_str(text),
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

impl fmt::Debug for ClosingTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClosingTexts").field("done", &self.done).finish_non_exhaustive()
    }
}
