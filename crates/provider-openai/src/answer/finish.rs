//! Finish reasons: maps the words of many servers to this project's.

use advisor_core::{Finish, FinishReason};

/// The words for each reason, from the API references and the sources of the servers that write them. Gateways pass on
/// the words of the API behind them.
///
/// A word that is missing here ends no call: it may have cut one. So the words for a whole answer must all be here. The
/// others only give a better name.
const WORDS: [(FinishReason, &[&str]); 7] = [
    (
        FinishReason::Stop,
        &[
            "stop",          // OpenAI and nearly all others; Gemini
            "eos",           // Together
            "eos_token",     // Text Generation Inference
            "stop_sequence", // Text Generation Inference, Cohere, Anthropic
            "end_turn",      // Anthropic, Bedrock
            "complete",      // Cohere
            "completed",     // the Responses API
        ],
    ),
    (
        FinishReason::Length,
        &[
            "length",                        // OpenAI
            "max_tokens",                    // Anthropic, Bedrock, Cohere, Gemini
            "max_output_tokens",             // the Responses API
            "model_length",                  // Mistral
            "model_context_window_exceeded", // Anthropic, Bedrock, Z.ai
            "context_length_exceeded",       // OpenAI's code for it
        ],
    ),
    (
        FinishReason::ToolCalls,
        &[
            "tool_calls",    // OpenAI
            "function_call", // the first version of OpenAI's API
            "tool_call",     // Cohere
            "tool_use",      // Anthropic, Bedrock
        ],
    ),
    (
        FinishReason::ContentFilter,
        &[
            "content_filter", // OpenAI
            "content_filtered", "guardrail_intervened", // Bedrock
            "sensitive",            // Z.ai
            "error_toxic",          // Cohere
            "safety", "recitation", "language", "blocklist", "prohibited_content", "spii", // Gemini
        ],
    ),
    (FinishReason::Refusal, &["refusal"]),   // Anthropic
    (FinishReason::Paused, &["pause_turn"]), // Anthropic
    // The server gave up in the middle.
    (
        FinishReason::Interrupted,
        &[
            "error",                        // Mistral, OpenRouter, Cohere
            "abort",                        // vLLM, SGLang
            "cancelled",                    // the Responses API
            "network_error",                // Z.ai
            "insufficient_system_resource", // DeepSeek
            "engine_overloaded",            // Moonshot
            "timeout",                      // Cohere
            "malformed_function_call", "unexpected_tool_call", "too_many_tool_calls", // Gemini
            "malformed_model_output", "malformed_tool_use", // Bedrock
        ],
    ),
];

/// Returns the reason for `written`, which is kept beside it.
pub(super) fn finish_of(written: &str) -> Finish {
    let known =
        WORDS.into_iter().find(|(_, words)| words.iter().any(|word| word.eq_ignore_ascii_case(written)));
    let reason = known.map_or_else(|| FinishReason::Other(written.into()), |(reason, _)| reason);
    Finish::written(reason, written)
}
