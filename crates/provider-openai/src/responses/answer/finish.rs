//! The end of an answer: its status and the reason for an incomplete one.

use std::borrow::Cow;

use advisor_core::{Finish, FinishReason, Text};

use crate::responses::wire::Response;

/// Returns the finish of an answer; `None` while the server still works on it, or if it failed. `status` is that of an
/// answer that names none, `completed` the reason of one that is complete. Only that reason leaves calls whole.
pub(super) fn finish_of(response: &Response<'_>, status: &str, completed: FinishReason) -> Option<Finish> {
    let written = response.status.text().unwrap_or(Cow::Borrowed(status));
    let reason = match &*written {
        "completed" => completed,
        "incomplete" => return Some(incomplete(response)),
        "failed" | "in_progress" | "queued" => return None,
        // `cancelled`, or a word that is new: nothing of such an answer may run.
        _ => FinishReason::Interrupted,
    };
    Some(Finish::written(reason, Text::from(written)))
}

fn incomplete(response: &Response<'_>) -> Finish {
    let written = response.incomplete_reason.text().unwrap_or(Cow::Borrowed("incomplete"));
    let reason = match &*written {
        "max_output_tokens" | "max_tokens" | "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        // The answer is cut for a reason that is new, so none of its calls may run.
        _ => FinishReason::Interrupted,
    };
    Finish::written(reason, Text::from(written))
}
