//! Answers and failures of a server, over a connection.

use std::error::Error as _;
use std::time::Duration;

use advisor_core::{ChatRequest, ChatResponse, Error, ErrorKind, Message, Result};
use advisor_test_support::recordings;
use advisor_testkit::{ReplayServer, Reply, answer_of};
use provider_gemini::backoff::Backoff;
use provider_gemini::{GeminiModel, ProviderError};
use serde_json::{Value, json};

const KEY: &str = "canary-key-0123456789";

fn model(server: &ReplayServer) -> GeminiModel {
    GeminiModel::new("gemini-2.5-flash")
        .with_base_url(server.url())
        .with_api_key(KEY)
        .with_retries(Backoff::none())
}

async fn call(model: &GeminiModel) -> Result<ChatResponse> {
    answer_of(model, ChatRequest::new(Message::user("Hello"))).await
}

async fn failure(reply: Reply) -> Error {
    let server = ReplayServer::start([reply]).await.expect("a port");
    call(&model(&server)).await.expect_err("the call fails")
}

fn answer() -> Value {
    json!({"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]})
}

#[tokio::test]
async fn law_s5_every_recording_over_http_at_any_split() {
    let recordings = recordings::all("gemini");
    recordings::assert_replays(&recordings, |_, server| model(server)).await;
}

#[tokio::test]
async fn each_way_to_ask_has_its_address() {
    let replies = [Reply::sse(format!("data: {}\r\n\r\n", answer())), Reply::json(200, answer())];
    let server = ReplayServer::start(replies).await.expect("a port");
    let model = model(&server);
    for model in [model.clone(), model.with_streaming(false)] {
        assert_eq!(call(&model).await.expect("an answer").text(), "Hi");
    }
    let requests = server.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    let path = |method: &str| format!("/v1beta/models/gemini-2.5-flash:{method}");
    assert_eq!(paths, [path("streamGenerateContent?alt=sse"), path("generateContent")]);
    assert_eq!(server.counts().connections, 1);
}

#[tokio::test]
async fn statuses_have_kinds_and_delays() {
    let report = |code: u16, message: &str, status: &str| {
        json!({"error": {"code": code, "message": message, "status": status, "details": [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}]}})
    };
    let delay = Some(Duration::from_millis(1500));
    for (status, report, kind) in [
        (400, report(400, "Invalid JSON payload received.", "INVALID_ARGUMENT"), ErrorKind::InvalidRequest),
        (
            400,
            report(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"),
            ErrorKind::Authentication,
        ),
        (
            400,
            report(
                400,
                "The input token count (1) exceeds the maximum number of tokens allowed (0).",
                "INVALID_ARGUMENT",
            ),
            ErrorKind::ContextOverflow,
        ),
        (
            400,
            report(
                400,
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
                "INVALID_ARGUMENT",
            ),
            ErrorKind::InvalidHistory,
        ),
        (
            400,
            report(
                400,
                "Function call is missing a thought_signature in functionCall parts.",
                "INVALID_ARGUMENT",
            ),
            ErrorKind::InvalidHistory,
        ),
        (403, report(403, "m", "PERMISSION_DENIED"), ErrorKind::Authentication),
        (404, report(404, "models/x is not found", "NOT_FOUND"), ErrorKind::NotFound),
        (
            429,
            report(429, "You exceeded your current quota", "RESOURCE_EXHAUSTED"),
            ErrorKind::RateLimited { retry_after: delay },
        ),
        (
            503,
            report(503, "The model is overloaded.", "UNAVAILABLE"),
            ErrorKind::Provider { status: Some(503) },
        ),
    ] {
        // A stream as an array reports its errors in one, too.
        for report in [report.clone(), json!([report])] {
            let error = failure(Reply::json(status, &report)).await;
            assert_eq!(error.kind(), kind, "{report}");
            let source = error.source().and_then(|source| source.downcast_ref::<ProviderError>());
            assert_eq!(source.and_then(|said| said.status), Some(status));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failed_finish_is_retried_while_nothing_was_shown() {
    let malformed =
        json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "m"}]});
    let sse = |event: &Value| Reply::sse(format!("data: {event}\r\n\r\n"));
    let server = ReplayServer::start([sse(&malformed), sse(&answer())]).await.expect("a port");
    let model = model(&server).with_retries(Backoff::default());
    assert_eq!(call(&model).await.expect("an answer").text(), "Hi");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn law_r3_key_is_in_no_error() {
    let server_words =
        json!({"error": {"code": 400, "message": format!("bad key {KEY}"), "status": "INVALID_ARGUMENT"}});
    for reply in [
        Reply::json(400, &server_words),
        Reply::sse(format!("data: {server_words}\r\n\r\n")),
        Reply::sse(format!(
            "data: {}\r\n\r\n",
            json!({"candidates": [{"finishReason": KEY, "finishMessage": format!("no {KEY}")}]})
        )),
    ] {
        let error = failure(reply).await;
        let shown = format!("{error:?} {error} {}", advisor_core::text_with_sources(&error));
        assert!(!shown.contains(KEY) && !shown.contains("canary"), "{shown}");
    }
    let event = json!({"responseId": KEY, "modelVersion": KEY, "candidates": [{"content": {"parts": [
        {"functionCall": {"name": KEY, "id": KEY, "args": {}}}]}, "finishReason": "STOP"}]});
    let server = ReplayServer::start([Reply::sse(format!("data: {event}\r\n\r\n"))]).await.expect("a port");
    let response = call(&model(&server)).await.expect("an answer");
    assert!(!format!("{response:?}").contains(KEY), "{response:?}");
    let requests = server.requests();
    assert_eq!(requests[0].header("x-goog-api-key"), Some(KEY));
    assert!(!requests[0].path.contains("canary"));
}
