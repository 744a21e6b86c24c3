//! Tests of the ends of a stream, row by row, over a connection.

use std::time::Duration;

use advisor_core::ErrorKind;
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
    let finished = hello().without_done();
    let without_blank_line = finished.slice(..finished.len() - 2);
    for body in [finished, hello().done(), without_blank_line] {
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
async fn broken_framing_after_the_end_marker_completes() {
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
        assert_eq!(response.usage.and_then(|usage| usage.output_tokens), Some(2));
    }
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
