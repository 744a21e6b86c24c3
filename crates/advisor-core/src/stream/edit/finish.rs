//! `edited_finish`: the finish reason of an answer whose calls were added or removed.

use message_aggregator::{ChatResponse, Finish, FinishReason, Message};

/// Returns the reason for the end of a response that an editor changed to `edited`.
///
/// Calls that were added are a reason to wait for results, and calls that were all removed are none. A reason that
/// vetoes calls, or asks for another request, stays.
pub(super) fn edited_finish(response: &ChatResponse, edited: &Message) -> Finish {
    use FinishReason::{Empty, Other, Stop, ToolCalls};
    let has_calls = |message: &Message| message.tool_calls().next().is_some();
    let mut finish = response.finish().clone();
    finish.reason = match (finish.reason, has_calls(response.message()), has_calls(edited)) {
        (Stop | Empty | Other(_), false, true) => ToolCalls,
        (ToolCalls, true, false) => Stop,
        (Empty, false, false) if !edited.blocks().is_empty() => Stop,
        (reason, ..) => reason,
    };
    finish
}
