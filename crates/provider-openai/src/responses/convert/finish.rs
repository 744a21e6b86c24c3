//! The end of an answer: its status and the reason for an incomplete one.

use advisor_core::{Finish, FinishReason};

use crate::responses::wire::Response;

/// Returns the finish of an answer; `None` while the server still works on it, or if it failed. `status` is that of an
/// answer that names none, `completed` the reason of one that is complete. Only that reason leaves calls whole.
pub(super) fn finish_of(response: &Response<'_>, status: &str, completed: FinishReason) -> Option<Finish> {
    let status = response.status.text().unwrap_or(status);
    let reason = match status {
        "completed" => completed,
        "incomplete" => return Some(incomplete(response)),
        "failed" | "in_progress" | "queued" => return None,
        // `cancelled`, or a word that is new: nothing of such an answer may run.
        _ => FinishReason::Interrupted,
    };
    Some(Finish::written(reason, status))
}

fn incomplete(response: &Response<'_>) -> Finish {
    let details = response.incomplete_details.as_ref();
    let written = details.and_then(|details| details.reason.text()).unwrap_or("incomplete");
    let reason = match written {
        "max_output_tokens" | "max_tokens" | "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        // The answer is cut for a reason that is new, so none of its calls may run.
        _ => FinishReason::Interrupted,
    };
    Finish::written(reason, written)
}
