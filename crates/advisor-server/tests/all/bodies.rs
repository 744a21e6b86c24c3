//! Bodies that are slow or break off.

use std::io;
use std::time::Duration;

use advisor_server::{ServerLimits, serve};
use advisor_testkit::Answer;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use crate::setting::{LIMIT, Setting, post, refused, setting, text};

const BODY_TIMEOUT: Duration = Duration::from_secs(7);

fn limited(answers: impl IntoIterator<Item = Answer>) -> Setting {
    let Setting { server, model } = setting(answers);
    let limits = ServerLimits::default().with_body_timeout(BODY_TIMEOUT).with_body_bytes(1 << 20);
    Setting { server: server.with_limits(limits), model }
}

/// The routes that read a body.
const POSTS: [&str; 7] = [
    "/api/chat", "/api/chunks", "/api/ui", "/api/ag-ui", "/v1/chat/completions", "/v1/responses",
    "/v1/messages",
];

#[tokio::test(start_paused = true)]
async fn body_that_does_not_arrive_is_refused() {
    let setting = limited([]);
    for path in POSTS {
        let silent = stream::iter([Ok::<_, io::Error>(Bytes::from("{\"mess"))]).chain(stream::pending());
        let since = Instant::now();
        let response = setting.send(post(path).body(Body::from_stream(silent)).unwrap()).await;
        assert_eq!(response.headers()["connection"], "close", "the rest is not a request");
        assert_eq!(refused(response, StatusCode::REQUEST_TIMEOUT).await, "body_timeout", "{path}");
        assert_eq!(since.elapsed().as_secs(), BODY_TIMEOUT.as_secs(), "{path}");
    }
    assert_eq!(setting.model.calls(), 0);
}

/// A byte now and then does not extend the time.
#[tokio::test(start_paused = true)]
async fn body_in_drips_has_one_time_limit() {
    let drips = |pause: Duration| {
        let body = json!({"message": "How is it?"}).to_string().into_bytes();
        let drips = stream::iter(body).then(move |byte| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, io::Error>(Bytes::from(vec![byte]))
        });
        post("/api/chat").body(Body::from_stream(drips)).unwrap()
    };
    let setting = limited([Answer::from_text("Fine.")]);
    let slow = setting.send(drips(Duration::from_secs(1))).await;
    assert_eq!(refused(slow, StatusCode::REQUEST_TIMEOUT).await, "body_timeout");
    let in_time = setting.send(drips(Duration::from_millis(100))).await;
    assert!(text(in_time).await.contains("Fine."));
}

#[tokio::test]
async fn large_and_deep_bodies_are_refused_by_every_route() {
    let setting = limited([]);
    let large = format!(r#"{{"message":"{}"}}"#, "x".repeat(1 << 20));
    let nested = |key: &str| format!(r#"{{"{key}":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    for path in POSTS {
        let response = setting.send(post(path).body(Body::from(large.clone())).unwrap()).await;
        assert_eq!(refused(response, StatusCode::PAYLOAD_TOO_LARGE).await, "body_too_large", "{path}");
        // In a field that the route reads, and in one that it does not know.
        for key in ["messages", "unknown"] {
            let response = setting.send(post(path).body(Body::from(nested(key))).unwrap()).await;
            assert_eq!(refused(response, StatusCode::BAD_REQUEST).await, "invalid_request", "{path}");
        }
    }
    assert_eq!(setting.model.calls(), 0);
}

#[tokio::test]
async fn body_that_breaks_off_is_refused() {
    let setting = limited([]);
    for path in POSTS {
        let cut = [Ok(Bytes::from("{\"mess")), Err(io::Error::other("canary"))];
        let response = setting.send(post(path).body(Body::from_stream(stream::iter(cut))).unwrap()).await;
        assert_eq!(refused(response, StatusCode::BAD_REQUEST).await, "body_truncated", "{path}");
    }
    assert_eq!(setting.model.calls(), 0);
}

/// A client that ends its half of the connection within the body can still read the answer.
#[tokio::test]
async fn connection_that_ends_within_the_body_is_answered() {
    let setting = limited([]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let serving = tokio::spawn(serve(listener, setting.server.clone(), std::future::pending(), LIMIT));
    let head = "POST /api/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n";
    client.write_all(format!("{head}{{\"mess").as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = String::new();
    timeout(LIMIT, client.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("body_truncated"), "{answer:?}");
    serving.abort();
}
