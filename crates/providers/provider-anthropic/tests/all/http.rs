//! The model over a connection: requests, failures, retries, and a conversation with tools.

use std::error::Error as _;
use std::time::Duration;

use advisor_core::{ChatRequest, ChatResponse, Error, ErrorKind, FinishReason, Message, Result, ToolResult};
use advisor_test_support::recordings;
use advisor_testkit::{ReplayServer, Reply, answer_of};
use provider_anthropic::backoff::Backoff;
use provider_anthropic::{AnthropicModel, ProviderError};
use serde_json::{Value, json};

const KEY: &str = "sk-ant-canary-0123456789";
/// The longest wait in a test.
const LIMIT: Duration = Duration::from_secs(20);

fn model(server: &ReplayServer) -> AnthropicModel {
    let waits =
        Backoff { first: Duration::from_millis(1), longest: Duration::from_millis(1), ..Backoff::default() };
    AnthropicModel::new("claude-x").with_base_url(server.url()).with_api_key(KEY).with_retries(waits)
}

async fn call(model: &AnthropicModel, messages: Vec<Message>) -> Result<ChatResponse> {
    let read = answer_of(model, ChatRequest::new(messages));
    tokio::time::timeout(LIMIT, read).await.expect("an end in time")
}

async fn start(replies: impl IntoIterator<Item = Reply>) -> ReplayServer {
    ReplayServer::start(replies).await.expect("a port")
}

fn hello() -> Reply {
    let events = [
        json!({"type": "message_start", "message": {"id": "msg_1", "model": "claude-x", "content": []}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ];
    let framed = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()));
    Reply::sse(framed.collect::<String>())
}

fn failure(status: u16, error_type: &str, message: &str) -> Reply {
    Reply::json(
        status,
        json!({"type": "error", "error": {"type": error_type, "message": message}, "request_id": "req_1"}),
    )
}

fn said(error: &Error) -> &ProviderError {
    error.source().and_then(|source| source.downcast_ref()).expect("what the provider said")
}

#[tokio::test]
async fn request_has_key_version_and_body() {
    let server = start([hello()]).await;
    let response = call(&model(&server), vec![Message::user("Hi")]).await.expect("an answer");
    assert_eq!(response.text(), "Hello");
    let request = &server.requests()[0];
    assert_eq!((request.path.as_str(), request.header("x-api-key")), ("/v1/messages", Some(KEY)));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    let body = request.json().expect("JSON");
    assert_eq!((&body["model"], &body["stream"]), (&json!("claude-x"), &json!(true)));
    assert_eq!(body["messages"][0]["content"][0]["text"], "Hi");
}

#[tokio::test]
async fn whole_answer_gives_the_same_response() {
    let whole = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn", "usage": {"output_tokens": 1}});
    let server = start([Reply::json(200, whole), hello()]).await;
    let asked = vec![Message::user("Hi")];
    let whole = call(&model(&server).with_streaming(false), asked.clone()).await.expect("an answer");
    assert_eq!(whole, call(&model(&server), asked).await.expect("an answer"));
    assert_eq!(server.requests()[0].json().expect("JSON")["stream"], false);
}

#[tokio::test]
async fn statuses_have_kinds_and_words() {
    let asked = || vec![Message::user("Hi")];
    for (status, error_type, message, kind) in [
        (400, "invalid_request_error", "max_tokens: too large", ErrorKind::InvalidRequest),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8 maximum",
            ErrorKind::ContextOverflow,
        ),
        (
            400,
            "invalid_request_error",
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t",
            ErrorKind::InvalidHistory,
        ),
        (401, "authentication_error", "invalid x-api-key", ErrorKind::Authentication),
        (403, "permission_error", "no", ErrorKind::Authentication),
        (404, "not_found_error", "model: x", ErrorKind::NotFound),
        (413, "request_too_large", "too many bytes", ErrorKind::InvalidRequest),
        (429, "rate_limit_error", "slow down", ErrorKind::RateLimited { retry_after: None }),
        (500, "api_error", "m", ErrorKind::Provider { status: Some(500) }),
        (529, "overloaded_error", "Overloaded", ErrorKind::Provider { status: Some(529) }),
    ] {
        let server = start([failure(status, error_type, message)]).await;
        let error = call(&model(&server).with_retries(Backoff::none()), asked()).await.expect_err("an error");
        assert_eq!(error.kind(), kind, "{message}");
        assert_eq!(
            (said(&error).message.as_str(), said(&error).kind.as_deref()),
            (message, Some(error_type))
        );
        assert_eq!(said(&error).request_id.as_deref(), Some("req_1"));
    }
    let limited = failure(429, "rate_limit_error", "m").with_header("retry-after", "7");
    let server = start([limited]).await;
    let error = call(&model(&server).with_retries(Backoff::none()), asked()).await.expect_err("an error");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn overloaded_server_is_asked_again_until_something_was_shown() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}\n\n";
    let begun = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_0\"}}\n\n";
    let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
    for failed in [failure(529, "overloaded_error", "Overloaded"), Reply::sse(error)] {
        let server = start([failed, Reply::sse(format!("{begun}{ping}{error}")), hello()]).await;
        let response = call(&model(&server), vec![Message::user("Hi")]).await.expect("an answer");
        assert_eq!((response.text().as_str(), server.counts().requests), ("Hello", 3));
    }

    let text = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"H\"}}\n\n";
    let server = start([Reply::sse(format!("{begun}{text}{error}")), hello()]).await;
    let error = call(&model(&server), vec![Message::user("Hi")]).await.expect_err("an error");
    assert_eq!((error.partial().map(ChatResponse::text), server.counts().requests), (Some("H".into()), 1));
}

#[tokio::test]
async fn law_r3_anthropic_errors_do_not_show_key() {
    let words = format!("your key {KEY} is bad");
    for reply in [
        failure(401, KEY, &words),
        Reply::sse(format!(
            "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"message\":\"{words}\"}}}}\n\n"
        )),
        Reply::sse(format!("data: {{\"type\":\"{KEY}\",\"message\":\"{words}\"}}\n\n")),
        Reply::html(200, format!("<html>{words}")),
    ] {
        let server = start([reply]).await;
        let error = call(&model(&server).with_retries(Backoff::none()), vec![Message::user("Hi")]).await;
        let error = error.expect_err("an error");
        let shown = format!("{error} {error:?} {:?}", error.source().map(ToString::to_string));
        assert!(!shown.contains("canary"), "{shown}");
    }
}

/// Replays the first of two recorded answers, answers its calls, and returns what is sent then, and what the
/// recorded client sent.
async fn sent_and_recorded(first: &str, second: &str, results: &[&str]) -> Option<(Value, Value)> {
    let recordings = recordings::all("anthropic-messages");
    let answer = recordings.named(first)?;
    let path = recordings.directory()?.join(format!("{second}.request.json"));
    let recorded: Value = serde_json::from_slice(&std::fs::read(path).expect("the request")).expect("JSON");
    let server = start([Reply::sse(answer.body.clone()), hello()]).await;
    let asked = recorded["messages"][0]["content"][0]["text"].as_str().expect("a text");
    let mut messages = vec![Message::user(asked)];
    let response = call(&model(&server), messages.clone()).await.expect("an answer");
    messages.push(response.message().clone());
    let calls = response.tool_calls().map(|(_, call)| call);
    messages.extend(
        calls.zip(results).map(|(call, result)| Message::tool(ToolResult::new(call, vec![(*result).into()]))),
    );
    call(&model(&server), messages).await.expect("an answer");
    let sent = server.requests()[1].json().expect("JSON");
    Some((sent["messages"].clone(), recorded["messages"].clone()))
}

#[tokio::test]
async fn recorded_calls_and_thinking_are_replayed_as_recorded() {
    let thinking = sent_and_recorded(
        "anthropic-claude-sonnet-4-20250514-thinking-tool-01",
        "anthropic-claude-sonnet-4-20250514-text-after-thinking-tool-01",
        &["40 C"],
    );
    let tools = sent_and_recorded(
        "anthropic-claude-sonnet-4-20250514-text-parallel-tools-01",
        "anthropic-claude-sonnet-4-20250514-text-after-tools-01",
        &["5", "6"],
    );
    for pair in [thinking.await, tools.await] {
        let Some((mut sent, recorded)) = pair else { continue };
        // The recorded client did not send back who called the tool.
        let blocks = sent.as_array_mut().into_iter().flatten();
        for block in blocks.filter_map(|message| message["content"].as_array_mut()).flatten() {
            block.as_object_mut().expect("a block").remove("caller");
        }
        assert_eq!(sent, recorded);
    }
}

#[tokio::test]
async fn law_s5_every_recording_over_http_at_any_split() {
    let recordings = recordings::all("anthropic-messages");
    recordings::assert_replays(&recordings, |_, server| model(server).with_retries(Backoff::none())).await;
}

#[tokio::test]
async fn paused_answer_is_sent_back_unchanged() {
    let recordings = recordings::all("anthropic-messages");
    let Some(paused) = recordings.named("anthropic-claude-sonnet-4-5-20250929-web-search-pause-turn-01")
    else {
        return;
    };
    let server = start([Reply::sse(paused.body.clone()), hello()]).await;
    let asked = Message::user("Search.");
    let response = call(&model(&server), vec![asked.clone()]).await.expect("an answer");
    assert_eq!((&response.finish.reason, response.tool_calls().count()), (&FinishReason::Paused, 0));
    call(&model(&server), vec![asked, response.message().clone()]).await.expect("an answer");
    let sent = server.requests()[1].json().expect("JSON");
    let content = sent["messages"][1]["content"].as_array().cloned().unwrap_or_default();
    let kinds: Vec<&str> = content.iter().filter_map(|block| block["type"].as_str()).collect();
    let expected: Vec<&str> =
        paused.expected["blocks"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert_eq!(kinds, expected);
    assert!(content[0]["signature"].as_str().is_some_and(|signature| signature.len() > 1000));
    let inputs =
        content.iter().filter(|block| block["type"] == "server_tool_use").map(|block| &block["input"]);
    let recorded =
        paused.expected["server_tool_calls"].as_array().into_iter().flatten().map(|call| &call["input"]);
    assert!(inputs.eq(recorded));
}
