//! Failures of the server and of the way to it, each with its kind.

use std::error::Error as _;

use advisor_core::{Error, ErrorKind};
use advisor_testkit::{ReplayServer, Reply, Step};
use bytes::Bytes;
use provider_openai::ProviderError;
use provider_openai::timeouts::Timeouts;
use serde_json::json;

use crate::http::common::{SECOND, call, fail, hello, model};

async fn failure(reply: Reply) -> Error {
    let server = ReplayServer::start([reply]).await.expect("a port");
    fail(&model(&server)).await
}

fn said(error: &Error) -> &ProviderError {
    error.source().and_then(|source| source.downcast_ref()).expect("what the provider said")
}

#[tokio::test]
async fn statuses_have_kinds() {
    let report = json!({"error": {"message": "m", "type": "t", "code": "c"}});
    for (status, kind) in [
        (401, ErrorKind::Authentication),
        (403, ErrorKind::Authentication),
        (404, ErrorKind::NotFound),
        (429, ErrorKind::RateLimited { retry_after: None }),
        (500, ErrorKind::Provider { status: Some(500) }),
        (529, ErrorKind::Provider { status: Some(529) }),
    ] {
        let error = failure(Reply::json(status, &report)).await;
        assert_eq!(error.kind(), kind);
        assert_eq!((said(&error).status, said(&error).message.as_str()), (Some(status), "m"));
        assert!(!error.emitted());
    }
    let limited = failure(Reply::status(429).with_header("retry-after", "7")).await;
    assert_eq!(limited.retry_after(), Some(std::time::Duration::from_secs(7)));
}

#[tokio::test]
async fn long_report_is_cut_and_html_is_quoted() {
    let error = failure(Reply::html(502, format!("<html>{}", "x".repeat(1 << 20)))).await;
    assert_eq!(error.kind(), ErrorKind::Provider { status: Some(502) });
    assert_eq!(said(&error).message.len(), 2048);
    assert!(said(&error).message.starts_with("<html>xxx"));
}

#[tokio::test]
async fn interrupted_error_report_is_used_partially() {
    let error = failure(Reply::json(500, json!({"error": "m"})).cut_after(6)).await;
    assert_eq!(
        (error.kind(), said(&error).message.as_str()),
        (ErrorKind::Provider { status: Some(500) }, "{\"erro")
    );
}

#[tokio::test]
async fn endless_error_report_releases_its_connection() {
    let report = Reply::json(429, json!({"error": {"message": "slow down"}})).stall_after(11);
    let server = ReplayServer::start([report]).await.expect("a port");
    let error = fail(
        &model(&server).with_timeouts(Timeouts { error_body_timeout: SECOND / 10, ..Timeouts::default() }),
    )
    .await;
    assert_eq!(error.kind(), ErrorKind::RateLimited { retry_after: None });
    server.disconnected().await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = ReplayServer::start([Reply::sse(hello().done())]).await.expect("a port");
    let moved = Reply::status(307).with_header("location", &format!("{}/v1/chat/completions", target.url()));
    assert_eq!(failure(moved).await.kind(), ErrorKind::Configuration);
    assert_eq!(target.counts().connections, 0);
}

#[tokio::test]
async fn refused_connection_is_typed() {
    let server = ReplayServer::start([]).await.expect("a port");
    let model = model(&server);
    let address = server.address();
    drop(server);
    // The port is free again once the server's task is gone.
    while std::net::TcpListener::bind(address).is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(fail(&model).await.kind(), ErrorKind::Connection);
}

#[tokio::test]
async fn hang_up_or_reset_before_answer_is_retryable() {
    for reply in [Reply::hang_up(), Reply::reset()] {
        let error = failure(reply).await;
        assert_eq!(error.kind(), ErrorKind::Connection);
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn success_with_something_else_than_a_stream() {
    let whole = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]});
    let server = ReplayServer::start([Reply::json(200, whole)]).await.expect("a port");
    assert_eq!(call(&model(&server)).await.expect("an answer").text(), "Hi");

    let error = failure(Reply::json(200, json!({"error": {"message": "m", "code": 429}}))).await;
    assert_eq!(error.kind(), ErrorKind::RateLimited { retry_after: None });
    let error = failure(Reply::json(200, json!({"data": {}, "success": true}))).await;
    assert_eq!(error.kind(), ErrorKind::Protocol { position: Some(0) });
    let error = failure(Reply::html(200, "<!DOCTYPE html><p>Sign in")).await;
    assert_eq!(error.kind(), ErrorKind::Protocol { position: None });
    assert!(error.to_string().contains("check the base URL"), "{error}");
    let error = failure(Reply::html(200, "")).await;
    assert_eq!(error.kind(), ErrorKind::Protocol { position: None });
    let error = failure(Reply::raw("HTTP/1.1 200 OK\r\nnot http\r\n\r\n")).await;
    assert_eq!(error.kind(), ErrorKind::Connection);
}

#[tokio::test]
async fn non_text_bytes_and_non_json_events_fail() {
    let good = hello().without_done();
    let bad = [&good[..40], b"\xFF", &good[40..]].concat();
    assert_eq!(failure(Reply::sse(bad)).await.kind(), ErrorKind::Protocol { position: Some(40) });
    let length = good.len() as u64;
    let broken = hello().raw("{\"choices\":").done();
    assert_eq!(failure(Reply::sse(broken)).await.kind(), ErrorKind::Protocol { position: Some(length) });
}

#[tokio::test]
async fn law_r1_line_of_100_mib_stops_at_limit() {
    let mebibyte = Bytes::from(vec![b'x'; 1 << 20]);
    let steps =
        std::iter::once(Step::Write("data: ".into())).chain((0..100).map(|_| Step::Write(mebibyte.clone())));
    let reply = Reply::sse("").with_steps(steps.collect());
    let server = ReplayServer::start([reply]).await.expect("a port");
    assert_eq!(fail(&model(&server)).await.kind(), ErrorKind::TooLarge);
    server.disconnected().await;
}

#[tokio::test]
async fn failed_generation_of_refused_call_is_kept() {
    let report = json!({"error": {"message": "m", "code": "tool_use_failed", "failed_generation": "<f>", "status_code": 400}});
    let refused = failure(Reply::json(400, &report)).await;
    let in_stream = failure(Reply::sse(format!("event: error\ndata: {report}\n\n"))).await;
    for error in [refused, in_stream] {
        assert_eq!(said(&error).failed_generation.as_deref(), Some("<f>"));
        assert!(error.is_retryable());
    }
}

/// Nothing asks for compression, so nothing here inflates: a few bytes cannot become many.
#[tokio::test]
async fn a_compressed_answer_is_refused_and_never_inflated() {
    // The beginning of what `gzip` writes.
    let body: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03";
    for coding in ["gzip", "br", "ZSTD", "identity, gzip"] {
        let server = ReplayServer::start([
            Reply::sse(body).with_header("content-encoding", coding),
            Reply::json(503, json!({})).with_header("content-encoding", coding),
        ])
        .await
        .expect("a port");
        let error = fail(&model(&server)).await;
        assert_eq!(error.kind(), ErrorKind::Protocol { position: None }, "{coding}");
        assert!(error.to_string().contains("compressed"), "{error}");
        let error = fail(&model(&server)).await;
        assert_eq!(error.kind(), ErrorKind::Provider { status: Some(503) });
        assert_eq!(said(&error).message, "", "what cannot be read is not quoted");
        assert!(server.requests().iter().all(|asked| asked.header("accept-encoding") == Some("identity")));
    }
    // Some servers name a character set here.
    for coding in ["identity", "utf-8", ""] {
        let reply = Reply::sse(hello().done()).with_header("content-encoding", coding);
        let server = ReplayServer::start([reply]).await.expect("a port");
        assert_eq!(call(&model(&server)).await.expect("completed").text(), "Hello there");
    }
}
