//! Tests of the replay server's answers.

use super::client::Client;
use super::{BODY, soon};
use advisor_testkit::split::random_offsets;
use advisor_testkit::{Framing, Gate, ReplayServer, Reply};
use futures::FutureExt;
use serde_json::json;

#[tokio::test]
async fn requests_get_scripted_replies_in_order_per_connection() {
    let server = ReplayServer::start([
        Reply::sse(BODY),
        Reply::json(429, json!({"error": "slow down"})).with_header("retry-after", "2"),
        Reply::status(503),
        Reply::html(502, "<h1>Bad gateway</h1>"),
    ])
    .await
    .unwrap();
    let mut client = Client::connect(&server).await;

    client.post("/v1/chat/completions", "{\"n\":1}").await;
    assert!(client.head().await.contains("\r\ncontent-type: text/event-stream\r\n"));
    assert_eq!(client.chunks().await.unwrap().concat(), BODY.as_bytes());

    client.post("/2", "{}").await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{head}");
    assert!(head.contains("\r\nretry-after: 2\r\n"), "{head}");
    assert_eq!(client.exactly(21).await, "{\"error\":\"slow down\"}");

    client.post("/3", "").await;
    assert!(client.head().await.starts_with("HTTP/1.1 503 "));

    client.write("POST /4 HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc").await;
    assert!(client.head().await.starts_with("HTTP/1.1 502 "));
    assert_eq!(client.exactly(20).await, "<h1>Bad gateway</h1>");

    client.post("/5", "").await;
    assert!(client.head().await.starts_with("HTTP/1.1 410 "));
    let message = "{\"error\":{\"message\":\"the replay script has 4 replies, and this is request 5\"";
    assert_eq!(client.exactly(message.len()).await, message);

    let requests = server.requests();
    let paths: Vec<_> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/v1/chat/completions", "/2", "/3", "/4", "/5"]);
    assert_eq!(requests[0].json().unwrap(), json!({"n": 1}));
    assert_eq!(requests[0].header("host"), Some("test"));
    assert_eq!(requests[3].body, "abc");
    assert_eq!(requests[3].text(), "abc");
    let counts = soon(server.until(|counts| counts.replies == 5)).await;
    assert_eq!((counts.connections, counts.requests, counts.disconnects), (1, 5, 0));
}

#[tokio::test]
async fn each_piece_is_one_http_chunk() {
    let length = BODY.len();
    let mut splits = vec![(1..length).collect(), vec![], vec![7, 25]];
    splits.extend((0..20).map(|seed| random_offsets(length, seed, 9)));
    let replies: Vec<Reply> =
        splits.iter().map(|offsets: &Vec<usize>| Reply::sse(BODY).split_at(offsets)).collect();
    let server = ReplayServer::start(replies.clone()).await.unwrap();
    let mut client = Client::connect(&server).await;
    for (reply, offsets) in replies.iter().zip(&splits) {
        client.post("/", "").await;
        client.head().await;
        let chunks = client.chunks().await.unwrap();
        assert_eq!(chunks, reply.pieces());
        assert_eq!(chunks.len(), offsets.len() + 1);
        assert_eq!(chunks.concat(), BODY.as_bytes());
    }
    assert_eq!(server.counts().connections, 1);
}

#[tokio::test]
async fn the_test_decides_when_the_body_goes_on() {
    let (head, first, second) = (Gate::new(), Gate::new(), Gate::new());
    let reply = Reply::sse("abcdef")
        .gate_head(head.clone())
        .gate_after(0, first.clone())
        .gate_after(4, second.clone());
    let server = ReplayServer::start([reply]).await.unwrap();
    let mut client = Client::connect(&server).await;
    client.post("/", "").await;

    head.reached().await;
    assert_eq!(server.counts().requests, 1);
    assert!(client.head().now_or_never().is_none());
    head.release();
    client.head().await;
    first.reached().await;
    assert!(!second.is_reached());
    first.release();
    assert_eq!(client.chunk().await.unwrap(), b"abcd");
    second.reached().await;
    assert_eq!(server.counts().replies, 0);
    second.release();
    assert_eq!(client.chunks().await.unwrap(), [b"ef"]);
}

#[tokio::test]
async fn bodies_can_be_delimited_in_every_way() {
    let reply = || Reply::sse("abcdef").split_every(2);
    let server = ReplayServer::start([
        reply().with_framing(Framing::ContentLength),
        reply().with_framing(Framing::UntilClose),
        reply().with_framing(Framing::ContentLength).cut_after(3),
        Reply::raw("SSH-2.0-OpenSSH_9.6\r\n"),
        Reply::hang_up(),
    ])
    .await
    .unwrap();

    let mut client = Client::connect(&server).await;
    client.post("/", "").await;
    assert!(client.head().await.contains("\r\ncontent-length: 6\r\n"));
    assert_eq!(client.exactly(6).await, "abcdef");
    client.post("/", "").await;
    assert!(client.head().await.contains("\r\nconnection: close\r\n"));
    assert_eq!(client.rest().await.unwrap(), "abcdef");

    let mut client = Client::connect(&server).await;
    client.post("/", "").await;
    assert!(client.head().await.contains("\r\ncontent-length: 6\r\n"));
    assert_eq!(client.rest().await.unwrap(), "abc");

    for whole in ["SSH-2.0-OpenSSH_9.6\r\n", ""] {
        let mut client = Client::connect(&server).await;
        client.post("/", "").await;
        assert_eq!(client.rest().await.unwrap(), whole);
    }
}

#[tokio::test]
async fn connection_closes_when_client_requests_it() {
    let server = ReplayServer::start([Reply::status(200)]).await.unwrap();
    let mut client = Client::connect(&server).await;
    client.write("GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await;
    assert_eq!(client.rest().await.unwrap(), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
}

#[tokio::test]
async fn connections_are_served_at_the_same_time() {
    let gate = Gate::new();
    let server = ReplayServer::start([Reply::sse("abc").gate_after(1, gate.clone()), Reply::sse("def")])
        .await
        .unwrap();
    let mut first = Client::connect(&server).await;
    first.post("/1", "").await;
    gate.reached().await;
    let mut second = Client::connect(&server).await;
    second.post("/2", "").await;
    second.head().await;
    assert_eq!(second.chunks().await.unwrap().concat(), b"def");
    gate.release();
    first.head().await;
    assert_eq!(first.chunks().await.unwrap().concat(), b"abc");
    let requests = server.requests();
    assert_eq!((requests[0].connection, requests[1].connection), (0, 1));
}
