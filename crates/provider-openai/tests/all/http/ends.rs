//! Tests of the ends of a stream, row by row, over a connection.

use std::time::Duration;

use advisor_core::{ErrorKind, FinishReason};
use advisor_testkit::{ChatTranscript, Framing, Gate, ReplayServer, Reply};
use bytes::Bytes;
use provider_openai::timeouts::Timeouts;
use serde_json::json;

use crate::http::common::{call, fail, hello, model};

async fn server(reply: Reply) -> ReplayServer {
    ReplayServer::start([reply]).await.expect("a port")
}

fn half_a_call() -> ChatTranscript {
    ChatTranscript::new("m").text("Look: ").tool_call(0, "c1", "f", &["{\"a\":"])
}

#[tokio::test]
async fn finish_then_marker_or_end_completes() {
    for body in [
        hello().done(),
        hello().without_done(),
        hello().usage(3, 2).done(),
        hello().usage(3, 2).without_done(),
    ] {
        let usage = String::from_utf8_lossy(&body).contains("usage");
        let server = server(Reply::sse(body)).await;
        let response = call(&model(&server)).await.expect("completed");
        assert_eq!(
            (response.text().as_str(), &response.finish().reason),
            ("Hello there", &FinishReason::Stop)
        );
        assert!(!response.finish().inferred);
        assert_eq!(response.usage().and_then(|usage| usage.input_tokens), usage.then_some(3));
    }
}

#[tokio::test]
async fn calls_and_usage_may_follow_a_finish_reason() {
    let body = ChatTranscript::new("m")
        .tool_call(0, "c1", "f", &["{}"])
        .finish("tool_calls")
        .tool_call(1, "c2", "g", &["{\"a\":1}"])
        .finish("tool_calls")
        .usage(5, 6)
        .done();
    let server = server(Reply::sse(body)).await;
    let response = call(&model(&server)).await.expect("completed");
    assert_eq!(response.tool_calls().map(|(_, call)| call.name.as_str()).collect::<Vec<_>>(), ["f", "g"]);
    assert!(response.tool_calls().all(|(_, call)| call.complete));
    assert!(response.usage().is_some());
}

#[tokio::test]
async fn finish_on_open_connection_completes_after_grace() {
    for body in [hello().without_done(), hello().done()] {
        let server = server(Reply::sse(body.clone()).stall_after(body.len())).await;
        let timeouts = Timeouts { after_finish_timeout: Duration::ZERO, ..Timeouts::default() };
        let response = call(&model(&server).with_timeouts(timeouts)).await.expect("completed");
        assert_eq!(response.text(), "Hello there");
        server.disconnected().await;
    }
}

#[tokio::test]
async fn finish_then_a_broken_connection_completes() {
    for body in [hello().without_done(), hello().done()] {
        let cut = Reply::sse(body.clone()).cut_after(body.len());
        // The client has seen everything before the reset.
        let gate = Gate::new();
        let reset = Reply::sse(body.clone()).gate_after(body.len(), gate.clone()).reset_after(body.len());
        let cut_server = server(cut).await;
        assert_eq!(call(&model(&cut_server)).await.expect("completed").text(), "Hello there");
        let reset_server = server(reset).await;
        let release = async {
            gate.reached().await;
            gate.release();
        };
        let model = model(&reset_server);
        let (response, ()) = tokio::join!(call(&model), release);
        assert_eq!(response.expect("completed").text(), "Hello there");
    }
}

#[tokio::test]
async fn d20_broken_framing_after_the_end_marker_completes() {
    let body = hello().usage(3, 2).done();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    let chunked = |rest: &str| {
        let chunk = format!("{:x}\r\n{}\r\n", body.len(), String::from_utf8_lossy(&body));
        format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}{rest}")
    };
    let longer = format!("{head}content-length: 9999\r\n\r\n{}", String::from_utf8_lossy(&body));
    for raw in [
        chunked("no length\r\n"),
        chunked("ffffffffffffffffff\r\n"),
        chunked("5\r\nab"),
        chunked("0\r\nno trailer\r\n\r\n"),
        longer,
    ] {
        let server = server(Reply::raw(raw.clone())).await;
        let response = call(&model(&server)).await.expect(&raw);
        assert_eq!(response.text(), "Hello there");
        assert_eq!(response.usage().and_then(|usage| usage.output_tokens), Some(2));
    }
}

#[tokio::test]
async fn the_marker_alone_completes_with_an_inferred_finish() {
    let text = server(Reply::sse(ChatTranscript::new("m").text("Hello").done())).await;
    let response = call(&model(&text)).await.expect("completed");
    assert!(response.finish().inferred);
    assert_eq!(response.finish().reason, FinishReason::Stop);

    let whole = server(Reply::sse(ChatTranscript::new("m").tool_call(0, "c1", "f", &["{}"]).done())).await;
    let response = call(&model(&whole)).await.expect("completed");
    assert!(response.finish().inferred && response.tool_calls().all(|(_, call)| call.complete));

    // A call that cannot be read is not complete.
    let half = server(Reply::sse(half_a_call().done())).await;
    let response = call(&model(&half)).await.expect("completed");
    assert!(response.tool_calls().all(|(_, call)| !call.complete));
    assert_eq!(response.tool_calls().count(), 1);
}

#[tokio::test]
async fn an_end_with_neither_is_truncated() {
    let bodies = [
        ChatTranscript::new("m").text("Hello").without_done(),
        half_a_call().without_done(),
        ChatTranscript::new("m").raw_bytes(": alive\n\n").without_done(),
        Bytes::new(),
    ];
    for body in bodies {
        for framing in [Framing::Chunked, Framing::UntilClose, Framing::ContentLength] {
            let server = server(Reply::sse(body.clone()).with_framing(framing)).await;
            let error = fail(&model(&server)).await;
            assert_eq!(error.kind(), ErrorKind::Truncated);
            let partial = error.partial().expect("what came");
            assert!(partial.tool_calls().all(|(_, call)| !call.complete));
        }
    }
}

#[tokio::test]
async fn break_before_end_is_connection_error() {
    let body = half_a_call().without_done();
    let length = body.len();
    let cut = server(Reply::sse(body.clone()).cut_after(length)).await;
    let gate = Gate::new();
    let reset = server(Reply::sse(body).gate_after(length, gate.clone()).reset_after(length)).await;
    let release = async {
        gate.reached().await;
        gate.release();
    };
    let after = model(&reset);
    let (after_reset, ()) = tokio::join!(fail(&after), release);
    for error in [fail(&model(&cut)).await, after_reset] {
        assert_eq!(error.kind(), ErrorKind::Connection);
        assert!(error.emitted(), "something was shown");
        let partial = error.partial().expect("what came");
        assert_eq!(partial.text(), "Look: ");
        assert!(partial.tool_calls().all(|(_, call)| !call.complete));
    }
}

#[tokio::test]
async fn stream_error_counts_even_after_finish_reason() {
    let overloaded = json!({"error": {"message": "overloaded", "code": 503}});
    let call_then_error = ChatTranscript::new("m").text("Hi").tool_call(0, "c1", "f", &["{}"]);
    for body in [
        call_then_error.clone().raw(&overloaded).done(),
        call_then_error.clone().finish("tool_calls").raw(&overloaded).done(),
        call_then_error.finish("tool_calls").raw(&overloaded).without_done(),
    ] {
        let server = server(Reply::sse(body)).await;
        let error = fail(&model(&server)).await;
        assert_eq!(error.kind(), ErrorKind::Provider { status: Some(503) });
        let partial = error.partial().expect("what came");
        assert_eq!((partial.text().as_str(), &partial.finish().reason), ("Hi", &FinishReason::Interrupted));
        assert!(partial.tool_calls().all(|(_, call)| !call.complete));
        assert!(error.emitted());
    }
}

#[tokio::test]
async fn after_the_marker_only_usage_counts() {
    let body = hello()
        .raw("[DONE]")
        .text(" and more")
        .raw(json!({"error": {"message": "late"}}))
        .raw("{broken")
        .usage(7, 8)
        .done();
    let server = server(Reply::sse(body)).await;
    let response = call(&model(&server)).await.expect("completed");
    assert_eq!(response.text(), "Hello there");
    assert_eq!(response.usage().and_then(|usage| usage.output_tokens), Some(8));
}

#[tokio::test]
async fn a_last_event_without_its_blank_line_counts() {
    let body = hello().without_done();
    let body = body.slice(..body.len() - 2);
    for framing in [Framing::Chunked, Framing::UntilClose] {
        let server = server(Reply::sse(body.clone()).with_framing(framing)).await;
        assert_eq!(call(&model(&server)).await.expect("completed").text(), "Hello there");
    }
    // Also where the connection broke right after it.
    let server = server(Reply::sse(body.clone()).cut_after(body.len())).await;
    assert_eq!(call(&model(&server)).await.expect("completed").text(), "Hello there");
}

#[tokio::test]
async fn broken_connection_does_not_hide_earlier_error() {
    let error = json!({"error": {"message": "overloaded", "code": 503}});
    let body = ChatTranscript::new("m").text("Hi").raw_bytes(format!("data: {error}\n")).without_done();
    let length = body.len();
    let said = server(Reply::sse(body).cut_after(length)).await;
    assert_eq!(fail(&model(&said)).await.kind(), ErrorKind::Provider { status: Some(503) });
    // A whole answer that breaks off is a broken connection, not malformed JSON.
    let whole = server(Reply::json(200, json!({"choices": []})).cut_after(9)).await;
    assert_eq!(fail(&model(&whole)).await.kind(), ErrorKind::Connection);
}

#[tokio::test]
async fn truncating_finish_reasons_leave_no_call_complete() {
    let known = ["length", "content_filter", "error", "insufficient_system_resource"];
    let unlisted = ["some_new_word", "other"];
    for reason in known.into_iter().chain(unlisted) {
        let body = ChatTranscript::new("m").tool_call(0, "c1", "f", &["{}"]).finish(reason).done();
        let server = server(Reply::sse(body)).await;
        let response = call(&model(&server)).await.expect("completed");
        assert!(response.tool_calls().all(|(_, call)| !call.complete), "{reason}");
        assert_eq!(response.finish().as_written.as_deref(), Some(reason));
    }
}
