//! Requests, recorded answers, and turns through a chain.

mod model;

use std::sync::Arc;
use std::time::Duration;

use adapter_tests::{
    Known, assert_memory_order, assert_options, assert_recordings, assert_signed_call,
    assert_signed_reasoning, assert_transcript,
};
use advisor_core::{ChatOptions, ChatRequest, Message};
use advisor_testkit::{ChatTranscript, ReplayServer, Reply, answer_of};
use serde_json::json;

#[tokio::test]
async fn messages_of_all_roles_are_sent() {
    assert_transcript(model::ask).await;
    assert_transcript(|url| Arc::new(model::model(url).with_reasoning_sent_back(true))).await;
}

#[tokio::test]
async fn options_are_sent() {
    let options = ChatOptions { stop: vec!["END".into()], seed: Some(7), ..ChatOptions::default() }
        .with_extra("top_k", 4);
    let fields =
        [("/seed", json!(7)), ("/stop", json!(["END"])), ("/max_tokens", json!(100)), ("/top_k", json!(4))];
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

/// A model with a target stays at its target.
#[tokio::test]
async fn requested_model_is_one_of_the_same_server() {
    let answer = || Reply::sse(ChatTranscript::new("m").text("Hi").finish("stop").done());
    let server = ReplayServer::start([answer()]).await.expect("a port");
    let options = ChatOptions { model: Some("claude-other".into()), ..ChatOptions::default() };
    let request = ChatRequest { options, ..ChatRequest::new(Message::user("Hello")) };
    assert_eq!(answer_of(&model::ask(&server.url()), request).await.expect("an answer").text(), "Hi");
    let sent = server.requests().pop().expect("a request");
    assert_eq!(sent.json().expect("JSON")["model"], "claude-other");
    assert_eq!(sent.header("authorization"), Some(&*format!("Bearer {}", adapter_tests::KEY)));
}

/// The client does not read a body to its end, so the next request may need another connection. All end with the model.
#[tokio::test]
async fn connections_of_complete_answers_end_with_the_model() {
    let body = || Reply::sse(ChatTranscript::new("m").text("Hi").finish("stop").done());
    let server = ReplayServer::start([body(), body(), body()]).await.expect("a port");
    let model = model::ask(&server.url());
    for _ in 0..3 {
        let request = ChatRequest::new(Message::user("Hello"));
        assert_eq!(answer_of(&model, request).await.expect("an answer").text(), "Hi");
    }
    drop(model);
    let closed = server.until(|counts| counts.open == 0);
    tokio::time::timeout(Duration::from_secs(10), closed).await.expect("all connections end");
}

#[tokio::test]
async fn recorded_answers_are_read() {
    // Choices are mixed. Not read are refusals, calls without an index from 0 on, and reasoning in details alone. Calls
    // with equal indexes are joined. Without the end marker, an answer does not end.
    let differences = &[
        ("cerebras-gpt-oss-120b-reasoning-tool-01", "error"),
        ("mistral-mistral-small-latest-tool-no-index-01", "tool_calls"),
        ("openai-gpt-4-1-mini-2025-04-14-two-choices-01", "text"),
        ("openai-gpt-4o-2024-08-06-refusal-01", "refusal"),
        ("openrouter-google-gemini-2-5-flash-lite-index0-many-tools-midstream-error-01", "arguments"),
        ("snowflake-claude-sonnet-4-6-reasoning-no-finish-01", "reasoning"),
        ("writer-palmyra-x4-seven-tools-args-null-01", "error"),
        ("zai-glm-4-5-flash-reasoning-tool-index-minus-one-01", "tool_calls"),
    ];
    assert_recordings(model::ask, Known { differences, reasoning: true }).await;
}
