//! `MemoryTexts` and the default texts that memory adds to a transcript.

use advisor_core::{Error, OUTCOME_UNKNOWN, Result, Text, VERIFY_BEFORE_RETRYING};

/// The result of a call in an answer that the turn did not continue with.
pub const NOT_STARTED: &str = "not started: the turn did not go on with this answer";

/// The result of a client-side call that never got one. A caller that runs such calls records their start; a
/// started call without a result gets [`VERIFY_BEFORE_RETRYING`] instead.
pub const NOT_RUN: &str = "not run: the conversation went on without it";

/// The text at the end of a turn with client-side calls, of which some were not answered.
pub const CONTINUED_WITHOUT_RESULTS: &str = "[the conversation went on without these results]";

/// The text at the end of an interrupted turn, after the shown part of its answer.
pub const INTERRUPTED: &str = "[interrupted]";

/// The text in place of an empty answer.
pub const NO_ANSWER: &str = "[no answer]";

/// The text in place of all rounds between two user messages, if they are left out.
pub const LEFT_OUT: &str = "[steps of this turn are left out here]";

/// The text in place of user messages, or of an answer, that are too large for the window.
pub const MESSAGE_LEFT_OUT: &str = "[this message is left out here: there is no room for it]";

/// The text in place of a message whose content the provider refused.
pub const MESSAGE_REFUSED: &str = "[this message is left out here: the provider refused its content]";

/// The text in place of a tool's result whose content the provider refused.
pub const RESULT_REFUSED: &str =
    "[the call has a result, which is left out here: the provider refused its content]";

const SUMMARY: &str = "Summary of the conversation so far:";

/// Declares the texts: the name of each, its setter and its default.
macro_rules! texts {
    ($(#[$of_type:meta])* $Type:ident; $($(#[$of_setter:meta])* $name:ident: $setter:ident = $default:expr;)*) => {
        $(#[$of_type])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $Type {
            $(pub(crate) $name: Text,)*
        }

        impl $Type {
            $($(#[$of_setter])*
            #[must_use]
            pub fn $setter(self, text: impl Into<Text>) -> Self {
                Self { $name: text.into(), ..self }
            })*

            /// Returns the texts with their names.
            fn named(&self) -> impl IntoIterator<Item = (&'static str, &Text)> {
                [$((stringify!($name), &self.$name)),*]
            }
        }

        impl Default for $Type {
            fn default() -> Self {
                Self { $($name: $default.into()),* }
            }
        }
    };
}

texts! {
    /// The texts that memory adds to the messages for the model, for [`ChatMemoryAdvisor::with_texts`].
    ///
    /// No text may be empty: the model's answers and the results of its calls must have content. Memory stores the
    /// results that it adds with its own texts. The same holds for the text in place of an empty answer between
    /// two messages of a turn. All other texts are added on reading, with the texts of the memory that reads.
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
    MemoryTexts;

    /// Sets the text that ends an interrupted turn; the default is [`INTERRUPTED`].
    interrupted: with_interrupted = INTERRUPTED;

    /// Sets the text that replaces an empty answer; the default is [`NO_ANSWER`].
    no_answer: with_no_answer = NO_ANSWER;

    /// Sets the text that ends a turn whose calls the caller did not answer; the default is [`CONTINUED_WITHOUT_RESULTS`].
    went_on: with_went_on = CONTINUED_WITHOUT_RESULTS;

    /// Sets the text that replaces rounds that are left out; the default is [`LEFT_OUT`].
    left_out: with_left_out = LEFT_OUT;

    /// Sets the text that replaces messages that are too large; the default is [`MESSAGE_LEFT_OUT`].
    message_left_out: with_message_left_out = MESSAGE_LEFT_OUT;

    /// Sets the text that replaces a message whose content the provider refused; the default is [`MESSAGE_REFUSED`].
    message_refused: with_message_refused = MESSAGE_REFUSED;

    /// Sets the text that replaces a result whose content the provider refused; the default is [`RESULT_REFUSED`].
    result_refused: with_result_refused = RESULT_REFUSED;

    /// Sets the result of a call in an answer that the turn did not continue with; the default is [`NOT_STARTED`].
    not_started: with_not_started = NOT_STARTED;

    /// Sets the result of a call that the caller did not answer; the default is [`NOT_RUN`].
    not_run: with_not_run = NOT_RUN;

    /// Sets the result of a call that was interrupted; the default is [`OUTCOME_UNKNOWN`].
    outcome_unknown: with_outcome_unknown = OUTCOME_UNKNOWN;

    /// Sets the result of an interrupted call that was started and must not run twice; the default is
    /// [`VERIFY_BEFORE_RETRYING`].
    verify_before_retrying: with_verify_before_retrying = VERIFY_BEFORE_RETRYING;

    /// Sets the line above a summary; the default is "Summary of the conversation so far:".
    summary: with_summary = SUMMARY;
}

impl MemoryTexts {
    /// Rejects empty texts.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration), with the name of the text.
    pub(crate) fn validate(&self) -> Result<()> {
        match self.named().into_iter().find(|(_, text)| text.trim().is_empty()) {
            Some((name, _)) => Err(Error::configuration(format!(
                "the text `{name}` of a memory is empty; set a text, since models refuse empty messages"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the shown text of an interrupted answer with the text at its end, and white space between them.
    pub(crate) fn after_interruption(&self, partial: &str) -> Text {
        let space = if partial.ends_with(char::is_whitespace) { "" } else { " " };
        format!("{partial}{space}{}", self.interrupted).into()
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
