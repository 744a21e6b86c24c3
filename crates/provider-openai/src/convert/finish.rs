//! Finish reasons: the words of many servers in this project's.

use advisor_core::{Finish, FinishReason, Text};

/// Which words mean the same.
const WORDS: [(FinishReason, &[&str]); 7] = [
    (FinishReason::Stop, &["stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed"]),
    (FinishReason::Length, &["length", "max_tokens", "max_output_tokens", "model_length"]),
    (FinishReason::ToolCalls, &["tool_calls", "tool_call", "tool_use", "function_call"]),
    (FinishReason::ContentFilter, &["content_filter", "safety", "sensitive"]),
    (FinishReason::Refusal, &["refusal"]),
    (FinishReason::Paused, &["pause_turn"]),
    // The server gave up in the middle, so a call that is still open is not to be run.
    (
        FinishReason::Interrupted,
        &["error", "abort", "network_error", "insufficient_system_resource", "malformed_function_call"],
    ),
];

/// The reason that a server writes as `written`, which is kept beside it. A word that is not known is kept as it is `shown`.
pub(super) fn finish_of(written: &str, shown: impl FnOnce(&str) -> Text) -> Finish {
    let known =
        WORDS.into_iter().find(|(_, words)| words.iter().any(|word| word.eq_ignore_ascii_case(written)));
    match known {
        Some((reason, _)) => Finish::written(reason, written),
        None => {
            let shown = shown(written);
            Finish::written(FinishReason::Other(shown.clone()), shown)
        }
    }
}
