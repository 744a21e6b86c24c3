//! Finish reasons: maps the words of the API to this project's.

use advisor_core::{Finish, FinishReason, Text};

/// The words for each reason, of the API reference (Messages, `stop_reason`). A word that is missing here lets only
/// those calls run whose block has ended.
const WORDS: [(FinishReason, &[&str]); 5] = [
    (FinishReason::Stop, &["end_turn", "stop_sequence"]),
    (FinishReason::Length, &["max_tokens", "model_context_window_exceeded"]),
    (FinishReason::ToolCalls, &["tool_use"]),
    (FinishReason::Refusal, &["refusal"]),
    // After a compaction that the request asked to pause at, the answer continues in the next request, too.
    (FinishReason::Paused, &["pause_turn", "compaction"]),
];

/// Returns the reason for `written`, which is kept beside it. An unknown word is kept as it is.
pub(super) fn finish_of(written: &str) -> Finish {
    let known = WORDS.into_iter().find(|(_, words)| words.contains(&written));
    let reason = known.map_or_else(|| FinishReason::Other(Text::from(written)), |(reason, _)| reason);
    Finish::written(reason, written)
}
