//! Tests of connections: they are reused, and closed when the answer is no longer wanted.

use advisor_core::ChatModel;
use advisor_testkit::{ChatTranscript, Gate, ReplayServer, Reply};
use futures::StreamExt;
use serde_json::json;

use crate::http::common::{call, fail, hello, model, request};

#[tokio::test]
async fn fifty_answers_make_one_connection() {
    let server =
        ReplayServer::start((0..50).map(|_| Reply::sse(hello().usage(1, 2).done()))).await.expect("a port");
    let model = model(&server);
    for _ in 0..50 {
        call(&model).await.expect("completed");
    }
    let counts = server.counts();
    assert_eq!((counts.requests, counts.connections, counts.disconnects), (50, 1, 0));
}

/// On several threads, a connection is free again a moment after the end of its body. The next request waits for that.
/// On a busy machine the moment may be too short, so one of several tries counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_answers_on_several_threads_make_one_connection() {
    let mut connections = Vec::new();
    while connections.last() != Some(&1) && connections.len() < 20 {
        let replies = (0..50).map(|_| Reply::sse(hello().usage(1, 2).done()));
        let server = ReplayServer::start(replies).await.expect("a port");
        let model = model(&server);
        let answers = async move {
            for _ in 0..50 {
                call(&model).await.expect("completed");
            }
        };
        tokio::spawn(answers).await.expect("no panic");
        connections.push(server.counts().connections);
    }
    assert_eq!(connections.last(), Some(&1), "{connections:?}");
}

#[tokio::test]
async fn every_kind_of_answer_leaves_the_connection_usable() {
    let whole = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]});
    let replies = [
        Reply::sse(hello().without_done()),
        Reply::sse(ChatTranscript::new("m").text("Hello").done()),
        Reply::json(200, whole),
        Reply::sse(hello().done()).split_every(3),
    ];
    let reports = [Reply::json(400, json!({"error": "m"})), Reply::status(500), Reply::html(503, "<p>")];
    let server = ReplayServer::start(replies.into_iter().chain(reports)).await.expect("a port");
    let model = model(&server);
    for _ in 0..4 {
        call(&model).await.expect("completed");
    }
    for _ in 0..3 {
        fail(&model).await;
    }
    assert_eq!((server.counts().requests, server.counts().connections), (7, 1));
}

#[tokio::test]
async fn clones_share_their_connections() {
    let server = ReplayServer::start((0..2).map(|_| Reply::sse(hello().done()))).await.expect("a port");
    let first = model(&server);
    let second = first.clone();
    call(&first).await.expect("completed");
    call(&second).await.expect("completed");
    assert_eq!(server.counts().connections, 1);
}

#[tokio::test]
async fn law_k2_dropping_the_stream_closes_the_connection() {
    let begun = ChatTranscript::new("m").text("Hello").without_done();
    let server =
        ReplayServer::start([Reply::sse(begun.clone()).stall_after(begun.len())]).await.expect("a port");
    let mut stream = model(&server).stream(request()).await.expect("an answer");
    assert!(stream.next().await.is_some_and(|chunk| chunk.is_ok()));
    assert_eq!(server.counts().disconnects, 0);
    drop(stream);
    server.disconnected().await;
    server.until(|counts| counts.open == 0).await;
}

#[tokio::test]
async fn law_k2_dropping_the_call_closes_the_connection() {
    let gate = Gate::new();
    let server =
        ReplayServer::start([Reply::sse(hello().done()).gate_head(gate.clone())]).await.expect("a port");
    let model = model(&server);
    let asking = model.stream(request());
    tokio::select! {
        _ = asking => panic!("the server has not answered"),
        () = gate.reached() => {}
    }
    server.disconnected().await;
    server.until(|counts| counts.open == 0).await;
}

#[tokio::test]
async fn stream_error_releases_connection() {
    let body = ChatTranscript::new("m").text("Hi").raw("{broken").without_done();
    let server =
        ReplayServer::start([Reply::sse(body.clone()).stall_after(body.len())]).await.expect("a port");
    let mut stream = model(&server).stream(request()).await.expect("an answer");
    while let Some(chunk) = stream.next().await {
        if chunk.is_err() {
            // The stream is still here, the connection is not.
            server.disconnected().await;
        }
    }
}
