//! Cuts, resets, stalls, and clients that go away.

use super::client::Client;
use super::{BODY, soon};
use advisor_testkit::{Gate, ReplayServer, Reply};
use futures::FutureExt;
use std::io::ErrorKind;
use tokio::net::TcpStream;

#[tokio::test]
async fn body_cut_at_any_byte_lacks_last_chunk() {
    for end in 0..=BODY.len() {
        let server = ReplayServer::start([Reply::sse(BODY).cut_after(end)]).await.unwrap();
        let mut client = Client::connect(&server).await;
        client.post("/", "").await;
        client.head().await;
        if end > 0 {
            assert_eq!(client.chunk().await.unwrap(), &BODY.as_bytes()[..end]);
        }
        let error = client.chunk().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "after {end} bytes");
        let counts = soon(server.until(|counts| counts.open == 0)).await;
        assert_eq!((counts.replies, counts.disconnects), (1, 0));
    }
}

#[tokio::test]
async fn body_reset_at_any_byte_resets_connection() {
    for end in 0..=BODY.len() {
        let server = ReplayServer::start([Reply::sse(BODY).reset_after(end)]).await.unwrap();
        let mut client = Client::connect(&server).await;
        client.post("/", "").await;
        client.head().await;
        if end > 0 {
            assert_eq!(client.chunk().await.unwrap(), &BODY.as_bytes()[..end]);
        }
        let error = client.chunk().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "after {end} bytes");
    }
}

#[tokio::test]
async fn client_disconnect_is_seen_at_any_reply_step() {
    let gate = Gate::new();
    let large = "x".repeat(32 << 20);
    for (name, reply) in [
        ("hang", Reply::hang()),
        ("stall after the head", Reply::sse("abc").stall_after(0)),
        ("stall in the body", Reply::sse("abc").stall_after(2)),
        ("stall at the end", Reply::sse("abc").stall_after(3)),
        ("closed gate", Reply::sse("abc").gate_after(1, gate.clone())),
        ("closed gate before the head", Reply::sse("abc").gate_head(gate)),
        ("more than any buffer holds", Reply::sse(large)),
    ] {
        let server = ReplayServer::start([reply]).await.unwrap();
        let mut client = Client::connect(&server).await;
        client.post("/", "").await;
        soon(server.until(|counts| counts.requests == 1)).await;
        assert!(server.disconnected().now_or_never().is_none(), "{name}");
        drop(client);
        soon(server.disconnected()).await;
        let counts = soon(server.until(|counts| counts.open == 0)).await;
        assert_eq!((counts.replies, counts.disconnects), (0, 1), "{name}");
    }
}

#[tokio::test]
async fn closing_idle_connection_is_no_disconnect() {
    let server = ReplayServer::start([Reply::sse("abc")]).await.unwrap();
    let mut client = Client::connect(&server).await;
    client.post("/", "").await;
    client.head().await;
    client.chunks().await.unwrap();
    drop(client);
    let counts = soon(server.until(|counts| counts.open == 0)).await;
    assert_eq!((counts.replies, counts.disconnects), (1, 0));
}

#[tokio::test]
async fn malformed_request_is_answered_with_reason() {
    let server = ReplayServer::start([]).await.unwrap();
    let mut client = Client::connect(&server).await;
    client.write("hello\r\n\r\n").await;
    let answer = client.rest().await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert!(answer.ends_with("bad request: `hello` is no request line\n"), "{answer}");
    assert_eq!(server.counts().requests, 0);
}

#[tokio::test]
async fn dropped_server_leaves_no_task_or_socket() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let server = ReplayServer::start([Reply::hang(), Reply::hang()]).await.unwrap();
    let address = server.address();
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(&server).await;
        client.post("/", "").await;
        clients.push(client);
    }
    soon(server.until(|counts| counts.requests == 2)).await;
    assert_eq!(alive(), before + 3);
    drop(server);
    for mut client in clients {
        // Closed or reset: either way the client's wait is over.
        let _ = soon(client.rest()).await;
    }
    let stopped = async {
        while alive() > before {
            tokio::task::yield_now().await;
        }
    };
    soon(stopped).await;
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}
