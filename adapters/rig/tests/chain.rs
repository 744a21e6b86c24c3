//! Requests, recorded answers, and turns through a chain.

mod model;

use adapter_tests::{
    Known, assert_memory_order, assert_options, assert_recordings, assert_signed_call,
    assert_signed_reasoning, assert_transcript,
};
use advisor_core::ChatOptions;
use serde_json::json;

#[tokio::test]
async fn messages_of_all_roles_are_sent() {
    assert_transcript(model::ask).await;
}

#[tokio::test]
async fn options_are_sent() {
    let options = ChatOptions {
        parallel_tool_calls: Some(false),
        stop: vec!["END".into()],
        seed: Some(7),
        ..ChatOptions::default()
    }
    .with_extra("top_k", 4);
    let fields = [
        ("/seed", json!(7)),
        ("/stop", json!(["END"])),
        ("/top_k", json!(4)),
        ("/parallel_tool_calls", json!(false)),
    ];
    assert_options(model::ask, options, &fields).await;
}

#[tokio::test]
async fn memory_has_the_answer_before_tools_run() {
    assert_memory_order(model::ask).await;
}

#[tokio::test]
async fn signed_reasoning_goes_back() {
    assert_signed_reasoning(model::ask_anthropic).await;
}

#[tokio::test]
async fn signature_of_a_call_goes_back() {
    assert_signed_call(model::ask_gemini).await;
}

#[tokio::test]
async fn recorded_answers_are_read() {
    // rig makes `tool_calls` of the word `stop` after calls. Not read are refusals, errors beside
    // choices, reasoning in details alone, and calls that repeat their names or ids.
    let differences = &[
        ("azure-openai-gpt-4o-mini-2024-07-18-forced-tool-content-filter-01", "finish_reason"),
        ("openai-compatible-moonshotai-kimi-k2-tool-id-name-repeated-01", "tool_calls"),
        ("openai-gpt-4o-2024-08-06-forced-tool-finish-stop-01", "finish_reason"),
        ("openai-gpt-4o-2024-08-06-refusal-01", "refusal"),
        ("openrouter-google-gemini-2-5-flash-lite-index0-many-tools-midstream-error-01", "error"),
        ("openrouter-minimax-minimax-m2-free-midstream-error-01", "error"),
        ("snowflake-claude-sonnet-4-6-reasoning-no-finish-01", "reasoning"),
        ("tgi-meta-llama-llama-3-1-8b-instruct-tool-id-repeated-no-finish-01", "tool_calls"),
        ("together-meta-llama-meta-llama-3-1-70b-instruct-turbo-parallel-tools-01", "arguments"),
    ];
    assert_recordings(model::ask, Known { differences, reasoning: true }).await;
}
