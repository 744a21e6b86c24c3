//! The texts that memory adds to a transcript.

use advisor_core::Text;

/// The result of a call in an answer that the turn did not continue with.
pub(crate) const NOT_STARTED: &str = "not started: the turn did not go on with this answer";

/// The result of a client-side call that never got one. A caller that runs such calls records their start; a
/// started call without a result gets [`VERIFY_BEFORE_RETRYING`](crate::VERIFY_BEFORE_RETRYING) instead.
pub(crate) const NOT_RUN: &str = "not run: the conversation went on without it";

/// The text at the end of a turn with client-side calls, of which some were not answered.
pub(crate) const CONTINUED_WITHOUT_RESULTS: &str = "[the conversation went on without these results]";

/// The text at the end of an interrupted turn, after the shown part of its answer.
pub const INTERRUPTED: &str = "[interrupted]";

/// The text in place of an empty answer.
pub(crate) const NO_ANSWER: &str = "[no answer]";

/// The text in place of all rounds between two user messages, if they are left out.
pub(crate) const LEFT_OUT: &str = "[steps of this turn are left out here]";

/// The text in place of user messages, or of an answer, that are too large for the window.
pub(crate) const MESSAGE_LEFT_OUT: &str = "[this message is left out here: there is no room for it]";

/// The text in place of a message whose content the provider refused.
pub(crate) const MESSAGE_REFUSED: &str = "[this message is left out here: the provider refused its content]";

/// The text in place of a tool's result whose content the provider refused.
pub(crate) const RESULT_REFUSED: &str =
    "[the call has a result, which is left out here: the provider refused its content]";

/// The line above a summary.
pub(crate) const SUMMARY: &str = "Summary of the conversation so far:";

/// Returns the shown text of an interrupted answer with the text at its end, and white space between them.
pub(crate) fn after_interruption(partial: &str) -> Text {
    let space = if partial.ends_with(char::is_whitespace) { "" } else { " " };
    format!("{partial}{space}{INTERRUPTED}").into()
}
