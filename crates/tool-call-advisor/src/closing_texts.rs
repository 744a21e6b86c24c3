use std::fmt;
use std::sync::Arc;

use advisor_core::{FinishReason, Limit, Text};

/// The sentences that the loop writes itself, in English unless the application gives its own.
///
/// A turn that a limit or a cut answer ends, ends with an assistant message of the loop's, which is shown as the
/// answer ([`with_closing`](Self::with_closing)). Calls that were not started are answered with why
/// ([`with_not_started`](Self::with_not_started)). What the model is told of a call that went wrong is not among them.
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
#[derive(Clone)]
pub struct ClosingTexts {
    closing: Arc<dyn Fn(&FinishReason) -> String + Send + Sync>,
    not_started: Arc<dyn Fn(&NotStarted) -> String + Send + Sync>,
    done: Text,
}

/// Why a call was not started.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotStarted {
    /// A limit was reached.
    Limit(Limit),
    /// The answer was cut off or stopped, for this reason.
    CutOff(FinishReason),
    /// A hook ended the turn.
    ByApplication,
    /// A hook left the call out.
    LeftOut,
    /// An error ended the turn.
    Failed,
}

impl ClosingTexts {
    /// The loop's own sentences.
    #[must_use]
    pub fn new() -> Self {
        Self {
            closing: Arc::new(closing),
            not_started: Arc::new(NotStarted::to_string),
            done: Text::from("Done."),
        }
    }

    /// The same, with what ends a turn that ended for this reason. It is shown, stored and sent.
    ///
    /// A blank text is not shown, and the response is empty then; see [`ClosingTexts::silent`].
    #[must_use]
    pub fn with_closing(self, text: impl Fn(&FinishReason) -> String + Send + Sync + 'static) -> Self {
        Self { closing: Arc::new(text), ..self }
    }

    /// The same, with what the model reads in place of the result of a call. A blank text is the loop's own.
    #[must_use]
    pub fn with_not_started(self, text: impl Fn(&NotStarted) -> String + Send + Sync + 'static) -> Self {
        Self { not_started: Arc::new(text), ..self }
    }

    /// The same, with what stands for a direct result that says and shows nothing. A blank text is the loop's own.
    #[must_use]
    pub fn with_done(self, text: impl Into<Text>) -> Self {
        Self { done: text.into(), ..self }
    }

    /// The same, without a closing sentence being shown: the application shows what it likes by the finish reason.
    ///
    /// The response has no block then. What is stored still ends with an assistant message, the loop's own sentence:
    /// a transcript that ends with results is refused by some providers, and the model should know what happened. It is
    /// [hidden](advisor_core::Message::hidden), so a turn that is submitted again does not show it either.
    #[must_use]
    pub fn silent(self) -> Self {
        self.with_closing(|_| String::new())
    }

    /// What ends a turn, and whether it is shown.
    pub(crate) fn closing(&self, reason: &FinishReason) -> (String, bool) {
        let text = (self.closing)(reason);
        if text.trim().is_empty() { (closing(reason), false) } else { (text, true) }
    }

    pub(crate) fn not_started(&self, why: &NotStarted) -> String {
        let text = (self.not_started)(why);
        if text.trim().is_empty() { why.to_string() } else { text }
    }

    pub(crate) fn done(&self) -> &str {
        if self.done.trim().is_empty() { "Done." } else { &self.done }
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

/// What the model reads by default.
impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not started: ")?;
        match self {
            Self::Limit(limit) => write!(f, "{limit} was reached"),
            Self::CutOff(reason) => {
                write!(f, "the answer was cut off ({})", cut_by(reason).unwrap_or("stopped"))
            }
            Self::ByApplication => f.write_str("the application ended the turn"),
            Self::LeftOut => f.write_str("the application left this call out"),
            Self::Failed => f.write_str("an error ended the turn"),
        }
    }
}

/// What cut an answer off, for people.
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
