//! `ClosingTexts` and `NotStarted`: replaceable closing sentences and reasons for unstarted calls.

use std::fmt;
use std::sync::Arc;

use advisor_core::{FinishReason, Limit, NotStartedReason, Text};

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
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotStarted {
    /// A limit was reached.
    Limit(Limit),
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
}

impl NotStarted {
    /// Returns the reason without its data, as tool events have it.
    #[must_use]
    pub fn reason(&self) -> NotStartedReason {
        match self {
            Self::Limit(_) => NotStartedReason::Limit,
            Self::CutOff(_) => NotStartedReason::AnswerCutOff,
            Self::ByApplication | Self::LeftOut | Self::Forbidden(_) | Self::Redefined => {
                NotStartedReason::Denied
            }
            Self::Failed => NotStartedReason::TurnFailed,
        }
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
        let text = (self.not_started)(why);
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
        f.write_str("not started: ")?;
        match self {
            Self::Limit(limit @ Limit::SameCall { .. }) => write!(
                f,
                "{limit} was reached; go on in another way, or answer"
            ),
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
