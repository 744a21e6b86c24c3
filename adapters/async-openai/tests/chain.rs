//! Requests, recorded answers, and turns through a chain.

mod model;

use adapter_tests::{Known, assert_memory_order, assert_options, assert_recordings, assert_transcript};
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
    };
    let fields = [
        ("/seed", json!(7)),
        ("/stop", json!(["END"])),
        ("/parallel_tool_calls", json!(false)),
        ("/max_completion_tokens", json!(100)),
    ];
    assert_options(model::ask, options, &fields).await;
}

#[tokio::test]
async fn memory_has_the_answer_before_tools_run() {
    assert_memory_order(model::ask).await;
}

#[tokio::test]
async fn recorded_answers_are_read() {
    // The types of the client have no field for an error beside choices. Reasoning in parts is not read.
    let differences: &[_] = if cfg!(feature = "byot") {
        &[
            ("mistral-mistral-small-latest-thinking-content-list-01", "reasoning"),
            ("openai-gpt-4-1-mini-2025-04-14-two-choices-01", "error"),
        ]
    } else {
        &[
            ("openai-gpt-4-1-mini-2025-04-14-two-choices-01", "error"),
            ("openrouter-google-gemini-2-5-flash-lite-index0-many-tools-midstream-error-01", "error"),
            ("openrouter-minimax-minimax-m2-free-midstream-error-01", "error"),
        ]
    };
    assert_recordings(model::ask, Known { differences, reasoning: cfg!(feature = "byot") }).await;
}
