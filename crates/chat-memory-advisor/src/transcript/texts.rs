use advisor_core::{Error, OUTCOME_UNKNOWN, Result, Text, VERIFY_BEFORE_RETRYING};

/// The result of a call in an answer that the turn did not continue with.
pub const NOT_STARTED: &str = "not started: the turn did not go on with this answer";

/// The result of a call that its turn left to the caller and that never got one. A caller that runs such calls
/// records their start; a started call without a result gets [`VERIFY_BEFORE_RETRYING`] instead.
pub const NOT_RUN: &str = "not run: the conversation went on without it";

/// The text at the end of a turn that left calls to the caller, of which some were not answered.
pub const WENT_ON: &str = "[the conversation went on without these results]";

/// The text at the end of an interrupted turn, after the shown part of its answer.
pub const INTERRUPTED: &str = "[interrupted]";

/// The text in place of an empty answer.
pub const NO_ANSWER: &str = "[no answer]";

/// The text in place of all rounds between two user messages, if they are left out.
pub const LEFT_OUT: &str = "[steps of this turn are left out here]";

/// The text in place of user messages, or of an answer, that are too large for the window.
pub const MESSAGE_LEFT_OUT: &str = "[this message is left out here: it is too long]";

const SUMMARY: &str = "Summary of the conversation so far:";

/// The texts that memory adds to the messages for the model, for [`ChatMemoryAdvisor::with_texts`].
///
/// No text may be empty: the model's answers and the results of its calls must have content. Memory stores the
/// results that it adds with its own texts. The same holds for the text in place of an empty answer between two
/// messages of a turn. All other texts are added on reading, with the texts of the memory that reads.
///
/// [`ChatMemoryAdvisor::with_texts`]: crate::ChatMemoryAdvisor::with_texts
///
/// # Example
/// ```
/// use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore, MemoryTexts};
///
/// # fn main() -> advisor_core::Result<()> {
/// let german = MemoryTexts::default().with_interrupted("[abgebrochen]").with_no_answer("[keine Antwort]");
/// let memory = ChatMemoryAdvisor::new(InMemoryStore::new()).with_texts(german)?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryTexts {
    pub(crate) interrupted: Text,
    pub(crate) no_answer: Text,
    pub(crate) went_on: Text,
    pub(crate) left_out: Text,
    pub(crate) message_left_out: Text,
    pub(crate) not_started: Text,
    pub(crate) not_run: Text,
    pub(crate) outcome_unknown: Text,
    pub(crate) verify_before_retrying: Text,
    pub(crate) summary: Text,
}

impl MemoryTexts {
    /// Sets the text that ends an interrupted turn; the default is [`INTERRUPTED`].
    #[must_use]
    pub fn with_interrupted(self, text: impl Into<Text>) -> Self {
        Self { interrupted: text.into(), ..self }
    }

    /// Sets the text that replaces an empty answer; the default is [`NO_ANSWER`].
    #[must_use]
    pub fn with_no_answer(self, text: impl Into<Text>) -> Self {
        Self { no_answer: text.into(), ..self }
    }

    /// Sets the text that ends a turn whose calls the caller did not answer; the default is [`WENT_ON`].
    #[must_use]
    pub fn with_went_on(self, text: impl Into<Text>) -> Self {
        Self { went_on: text.into(), ..self }
    }

    /// Sets the text that replaces rounds that are left out; the default is [`LEFT_OUT`].
    #[must_use]
    pub fn with_left_out(self, text: impl Into<Text>) -> Self {
        Self { left_out: text.into(), ..self }
    }

    /// Sets the text that replaces messages that are too large; the default is [`MESSAGE_LEFT_OUT`].
    #[must_use]
    pub fn with_message_left_out(self, text: impl Into<Text>) -> Self {
        Self { message_left_out: text.into(), ..self }
    }

    /// Sets the result of a call in an answer that the turn did not continue with; the default is [`NOT_STARTED`].
    #[must_use]
    pub fn with_not_started(self, text: impl Into<Text>) -> Self {
        Self { not_started: text.into(), ..self }
    }

    /// Sets the result of a call that the caller did not answer; the default is [`NOT_RUN`].
    #[must_use]
    pub fn with_not_run(self, text: impl Into<Text>) -> Self {
        Self { not_run: text.into(), ..self }
    }

    /// Sets the result of a call that was interrupted; the default is [`OUTCOME_UNKNOWN`].
    #[must_use]
    pub fn with_outcome_unknown(self, text: impl Into<Text>) -> Self {
        Self { outcome_unknown: text.into(), ..self }
    }

    /// Sets the result of an interrupted call that was started and must not run twice; the default is
    /// [`VERIFY_BEFORE_RETRYING`].
    #[must_use]
    pub fn with_verify_before_retrying(self, text: impl Into<Text>) -> Self {
        Self { verify_before_retrying: text.into(), ..self }
    }

    /// Sets the line above a summary; the default is "Summary of the conversation so far:".
    #[must_use]
    pub fn with_summary(self, text: impl Into<Text>) -> Self {
        Self { summary: text.into(), ..self }
    }

    /// Rejects empty texts.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration), with the name of the text.
    pub(crate) fn validate(&self) -> Result<()> {
        let texts = [
            ("interrupted", &self.interrupted),
            ("no_answer", &self.no_answer),
            ("went_on", &self.went_on),
            ("left_out", &self.left_out),
            ("message_left_out", &self.message_left_out),
            ("not_started", &self.not_started),
            ("not_run", &self.not_run),
            ("outcome_unknown", &self.outcome_unknown),
            ("verify_before_retrying", &self.verify_before_retrying),
            ("summary", &self.summary),
        ];
        match texts.into_iter().find(|(_, text)| text.trim().is_empty()) {
            Some((name, _)) => Err(Error::configuration(format!(
                "the text `{name}` of a memory is empty; give it words, since models refuse messages without any"
            ))),
            None => Ok(()),
        }
    }
}

impl Default for MemoryTexts {
    fn default() -> Self {
        Self {
            interrupted: INTERRUPTED.into(),
            no_answer: NO_ANSWER.into(),
            went_on: WENT_ON.into(),
            left_out: LEFT_OUT.into(),
            message_left_out: MESSAGE_LEFT_OUT.into(),
            not_started: NOT_STARTED.into(),
            not_run: NOT_RUN.into(),
            outcome_unknown: OUTCOME_UNKNOWN.into(),
            verify_before_retrying: VERIFY_BEFORE_RETRYING.into(),
            summary: SUMMARY.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::ErrorKind;

    use super::*;
    use crate::test_logs::other_texts;

    #[test]
    fn blank_text_is_refused_by_name() {
        MemoryTexts::default().validate().unwrap();
        other_texts().validate().unwrap();
        type With = fn(MemoryTexts, &'static str) -> MemoryTexts;
        let all: [(&str, With); 10] = [
            ("interrupted", MemoryTexts::with_interrupted),
            ("no_answer", MemoryTexts::with_no_answer),
            ("went_on", MemoryTexts::with_went_on),
            ("left_out", MemoryTexts::with_left_out),
            ("message_left_out", MemoryTexts::with_message_left_out),
            ("not_started", MemoryTexts::with_not_started),
            ("not_run", MemoryTexts::with_not_run),
            ("outcome_unknown", MemoryTexts::with_outcome_unknown),
            ("verify_before_retrying", MemoryTexts::with_verify_before_retrying),
            ("summary", MemoryTexts::with_summary),
        ];
        for (name, with) in all {
            let error = with(MemoryTexts::default(), " \n").validate().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
            assert_ne!(with(MemoryTexts::default(), "x"), MemoryTexts::default());
        }
    }
}
