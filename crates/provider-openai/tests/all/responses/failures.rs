//! Failures of the server, by status and in the stream.

use std::time::Duration;

use advisor_core::{Error, ErrorKind};
use advisor_testkit::{ReplayServer, Reply};
use provider_openai::backoff::Backoff;
use serde_json::json;

use crate::responses::{call_with, framed, hello, model, request, text};

async fn failure(reply: Reply) -> Error {
    let server = ReplayServer::start([reply]).await.expect("a port");
    call_with(&model(&server), request()).await.expect_err("a failure")
}

#[tokio::test]
async fn statuses_have_kinds() {
    let report = json!({"error": {"message": "m", "type": "t", "code": "c"}});
    for (status, kind) in [
        (401, ErrorKind::Authentication),
        (400, ErrorKind::InvalidRequest),
        (429, ErrorKind::RateLimited { retry_after: None }),
        (500, ErrorKind::Provider { status: Some(500) }),
    ] {
        assert_eq!(failure(Reply::json(status, &report)).await.kind(), kind);
    }
    let long = json!({"error": {"message": "m", "code": "context_length_exceeded"}});
    assert_eq!(failure(Reply::json(400, &long)).await.kind(), ErrorKind::ContextOverflow);
    let limited = failure(Reply::status(429).with_header("retry-after", "7")).await;
    assert_eq!(limited.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn failure_in_the_stream_keeps_the_partial_answer() {
    let failed =
        json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "m"}}});
    let error = failure(Reply::sse(framed(&[text(0, "Hel"), failed]))).await;
    assert_eq!(error.kind(), ErrorKind::Provider { status: None });
    assert_eq!(error.partial().map(|partial| partial.text()), Some("Hel".to_owned()));
    assert!(error.emitted());
    let cut = failure(Reply::sse(framed(&[text(0, "Hel")]))).await;
    assert_eq!(cut.kind(), ErrorKind::Truncated);
}

#[tokio::test]
async fn failure_before_any_answer_is_asked_again() {
    let created = json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}});
    let failed =
        json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "m"}}});
    let replies = [Reply::sse(framed(&[created, failed])), Reply::sse(hello())];
    let server = ReplayServer::start(replies).await.expect("a port");
    let retries = Backoff { retries: 1, first: Duration::ZERO, longest: Duration::ZERO, ..Backoff::none() };
    let response = call_with(&model(&server).with_retries(retries), request()).await.expect("an answer");
    assert_eq!((response.text().as_str(), server.requests().len()), ("Hello there", 2));
}

#[tokio::test]
async fn law_r3_error_and_its_source_show_no_key() {
    let key = "sk-canary-key-0123456789";
    let report = json!({"error": {"message": format!("bad key {key}"), "code": "invalid_api_key"}});
    let server = ReplayServer::start([Reply::json(401, &report)]).await.expect("a port");
    let error = call_with(&model(&server).with_api_key(key), request()).await.expect_err("a failure");
    let shown = format!("{error:?} {}", advisor_core::text_with_sources(&error));
    assert!(!shown.contains(key), "{shown}");
}
