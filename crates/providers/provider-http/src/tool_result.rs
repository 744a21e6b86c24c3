//! `parts_of_result`: the parts of a tool result; a failure without text says so.

use std::borrow::Cow;

use advisor_core::{Part, ToolResult};

/// A note in place of a failure without text.
const SILENT_FAILURE: &str = "[the tool failed without a message]";

/// Returns the parts of a tool result to send. A failure without text begins with a note: most APIs do not mark
/// failures, so the model learns of one only by a text.
///
/// # Example
/// ```
/// use advisor_core::{ToolCall, ToolResult};
/// use provider_http::parts_of_result;
///
/// let call = ToolCall::new("c1", "look", "{}");
/// let silent = ToolResult::error(&call, "");
/// assert_eq!(parts_of_result(&silent)[0].as_text(), Some("[the tool failed without a message]"));
/// let failed = ToolResult::error(&call, "It is dark.");
/// assert_eq!(parts_of_result(&failed), failed.parts);
/// ```
#[must_use]
pub fn parts_of_result(result: &ToolResult) -> Cow<'_, [Part]> {
    let says_something = |part: &Part| match part {
        Part::Text(text) => !text.trim().is_empty(),
        Part::Json(_) => true,
        _ => false,
    };
    if !result.is_error || result.parts.iter().any(says_something) {
        return Cow::Borrowed(&result.parts);
    }
    let others = result.parts.iter().filter(|part| part.as_text().is_none()).cloned();
    Cow::Owned([SILENT_FAILURE.into()].into_iter().chain(others).collect())
}
