use advisor_core::{Error, OUTCOME_UNKNOWN, Result, Text, VERIFY_BEFORE_RETRYING};

/// What a call is answered with when its answer was not the one that the turn went on with.
pub const NOT_STARTED: &str = "not started: the turn did not go on with this answer";

/// What a call is answered with that its turn left to the caller, and that nobody has answered. Who runs such calls
/// records their start, so that one that ran without an answer is told as [`VERIFY_BEFORE_RETRYING`].
pub const NOT_RUN: &str = "not run: the conversation went on without it";

/// What the model reads at the end of a turn that left calls to the caller, of which some were not answered.
pub const WENT_ON: &str = "[the conversation went on without these results]";

/// What the model reads at the end of a turn that was cut off, after what had been shown of its answer.
pub const INTERRUPTED: &str = "[interrupted]";

/// What the model reads where its answer was empty.
pub const NO_ANSWER: &str = "[no answer]";

/// What stands where all rounds between two messages of the user are left out.
pub const LEFT_OUT: &str = "[steps of this turn are left out here]";

/// What stands in place of messages of the user, or of an answer, that are too large for the window.
pub const MESSAGE_LEFT_OUT: &str = "[this message is left out here: it is too long]";

const SUMMARY: &str = "Summary of the conversation so far:";

/// The texts that memory adds to what the model is sent, for [`ChatMemoryAdvisor::with_texts`].
///
/// No text can be empty: the model's answers and the results of its calls must say something. Results that memory adds
/// are stored with the text of the memory that adds them, as is what stands for an empty answer between two messages of
/// a turn. All else is added when a conversation is read, with the text of the memory that reads it.
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
    /// The same texts, with what ends a turn that was cut off: [`INTERRUPTED`] if left out.
    #[must_use]
    pub fn with_interrupted(self, text: impl Into<Text>) -> Self {
        Self { interrupted: text.into(), ..self }
    }

    /// The same texts, with what stands for an empty answer: [`NO_ANSWER`] if left out.
    #[must_use]
    pub fn with_no_answer(self, text: impl Into<Text>) -> Self {
        Self { no_answer: text.into(), ..self }
    }

    /// The same texts, with what ends a turn whose calls the caller did not answer: [`WENT_ON`] if left out.
    #[must_use]
    pub fn with_went_on(self, text: impl Into<Text>) -> Self {
        Self { went_on: text.into(), ..self }
    }

    /// The same texts, with what stands for rounds that are left out: [`LEFT_OUT`] if left out.
    #[must_use]
    pub fn with_left_out(self, text: impl Into<Text>) -> Self {
        Self { left_out: text.into(), ..self }
    }

    /// The same texts, with what stands for messages that are too large: [`MESSAGE_LEFT_OUT`] if left out.
    #[must_use]
    pub fn with_message_left_out(self, text: impl Into<Text>) -> Self {
        Self { message_left_out: text.into(), ..self }
    }

    /// The same texts, with the result of a call of an answer that the turn did not go on with: [`NOT_STARTED`] if left
    /// out.
    #[must_use]
    pub fn with_not_started(self, text: impl Into<Text>) -> Self {
        Self { not_started: text.into(), ..self }
    }

    /// The same texts, with the result of a call that the caller did not answer: [`NOT_RUN`] if left out.
    #[must_use]
    pub fn with_not_run(self, text: impl Into<Text>) -> Self {
        Self { not_run: text.into(), ..self }
    }

    /// The same texts, with the result of a call that was cut off: [`OUTCOME_UNKNOWN`] if left out.
    #[must_use]
    pub fn with_outcome_unknown(self, text: impl Into<Text>) -> Self {
        Self { outcome_unknown: text.into(), ..self }
    }

    /// The same texts, with the result of a call that was started, must not run twice and was cut off:
    /// [`VERIFY_BEFORE_RETRYING`] if left out.
    #[must_use]
    pub fn with_verify_before_retrying(self, text: impl Into<Text>) -> Self {
        Self { verify_before_retrying: text.into(), ..self }
    }

    /// The same texts, with the line above a summary: "Summary of the conversation so far:" if left out.
    #[must_use]
    pub fn with_summary(self, text: impl Into<Text>) -> Self {
        Self { summary: text.into(), ..self }
    }

    /// Refuses a text that says nothing.
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
    fn a_text_that_says_nothing_is_refused_by_its_name() {
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
