//! Finish reasons: maps the words of many servers to this project's.

use advisor_core::{Finish, FinishReason};

/// The words for each reason.
const WORDS: [(FinishReason, &[&str]); 7] = [
    (FinishReason::Stop, &["stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed"]),
    (FinishReason::Length, &["length", "max_tokens", "max_output_tokens", "model_length"]),
    (FinishReason::ToolCalls, &["tool_calls", "tool_call", "tool_use", "function_call"]),
    (FinishReason::ContentFilter, &["content_filter", "safety", "sensitive"]),
    (FinishReason::Refusal, &["refusal"]),
    (FinishReason::Paused, &["pause_turn"]),
    // The server gave up in the middle, so an open call must not run.
    (
        FinishReason::Interrupted,
        &["error", "abort", "network_error", "insufficient_system_resource", "malformed_function_call"],
    ),
];

/// Returns the reason for `written`, which is kept beside it.
pub(super) fn finish_of(written: &str) -> Finish {
    let known =
        WORDS.into_iter().find(|(_, words)| words.iter().any(|word| word.eq_ignore_ascii_case(written)));
    let reason = known.map_or_else(|| FinishReason::Other(written.into()), |(reason, _)| reason);
    Finish::written(reason, written)
}
