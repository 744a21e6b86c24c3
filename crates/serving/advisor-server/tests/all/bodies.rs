//! Bodies that are slow, break off, or have too much.

use std::io;
use std::time::Duration;

use advisor_testkit::Answer;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::approvals::open_till;
use crate::connection::served;
use crate::large_pages::off_the_async_threads;
use crate::setting::{LIMIT, Setting, json_of, post, refused, setting, text};

const BODY_TIMEOUT: Duration = Duration::from_secs(7);

fn limited(answers: impl IntoIterator<Item = Answer>) -> Setting {
    setting(answers).limited(|limits| (limits.body_timeout, limits.body_bytes) = (BODY_TIMEOUT, 1 << 20))
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

/// Values of a body of one short field each: the most memory for their text.
fn objects(number: usize) -> String {
    format!("[{}]", vec![r#"{"":0}"#; number].join(","))
}

/// The bytes of a body do not bound the memory of its values.
#[tokio::test]
async fn law_r1_body_of_many_values_is_refused_by_every_route() {
    let setting = setting([]);
    let objects = objects(1 << 16);
    for path in POSTS {
        // In a field that the route reads, and in one that it does not know.
        for key in ["messages", "x"] {
            let body = format!(r#"{{"{key}":{objects}}}"#);
            let response = setting.send(post(path).body(Body::from(body)).unwrap()).await;
            assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE, "{path} {key}");
            let error = json_of(response).await["error"].clone();
            assert_eq!(error["code"], "body_too_large", "{path}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("131072 values: leave out earlier messages"), "{message}");
        }
    }
    assert_eq!(setting.model.calls(), 0);
}

/// A long text is one value, whatever its characters are.
#[tokio::test]
async fn long_text_is_one_value() {
    let setting = setting([Answer::from_text("Fine.")]);
    let said = r#"{"a":[1,2]}\,"#.repeat(100_000);
    let response = setting.post("/api/chat", &json!({"message": said})).await;
    assert!(text(response).await.contains("Fine."));
}

/// JSON in the texts of a body counts, too, where it is parsed.
#[tokio::test]
async fn law_r1_arguments_in_texts_are_bounded_together() {
    let till = open_till([]);
    let arguments = objects(1 << 15);
    let decision = |name: &str| json!({"key": format!("{name}/1/0"), "tool": "pay", "arguments": "{}", "verdict": {"approved_with": arguments}});
    let shown =
        |id: &str| json!({"type": "mcp_approval_request", "id": id, "name": "pay", "arguments": arguments});
    let decisions = json!([decision("t1"), decision("t2"), decision("t3")]);
    let input = json!([shown("a1"), shown("a2"), shown("a3")]);
    for (path, body) in [
        ("/api/chat", json!({"conversation": "c1", "decisions": decisions})),
        ("/api/chunks", json!({"conversation": "c1", "decisions": decisions})),
        ("/v1/responses", json!({"conversation": "c1", "input": input})),
    ] {
        let response = till.setting.post(path, &body).await;
        assert_eq!(refused(response, StatusCode::PAYLOAD_TOO_LARGE).await, "body_too_large", "{path}");
    }
}

#[test]
fn large_bodies_are_parsed_off_the_async_threads() {
    let large = json!({"message": "word ".repeat(20_000)});
    let setting = async { setting((0..10).map(|_| Answer::from_text("Fine."))) };
    off_the_async_threads("Fine.", setting, async |setting| {
        text(setting.post("/api/chat", &large).await).await
    });
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
    let (address, serving) = served(limited([]).server).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    let head = "POST /api/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n";
    client.write_all(format!("{head}{{\"mess").as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = String::new();
    timeout(LIMIT, client.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("body_truncated"), "{answer:?}");
    serving.abort();
}
