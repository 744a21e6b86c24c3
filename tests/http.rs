//! Whole turns over real HTTP, against the replay server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use advisor_chain::{
    ChatClient, ChatMemoryAdvisor, Error, ErrorKind, FnTool, InMemoryStore, OpenAiModel, Result,
    ToolCallAdvisor, ToolDefinition, ToolLimits,
};
use advisor_testkit::{ChatTranscript, ReplayServer, Reply};
use futures::StreamExt;
use serde_json::{Value, json};

fn client(server: &ReplayServer) -> ChatClient {
    let model = OpenAiModel::new("m").with_base_url(format!("{}/v1", server.url()));
    let work = ToolDefinition::new("work", "Works.", json!({"type": "object"}));
    ChatClient::builder(model)
        .advisor(
            ToolCallAdvisor::builder()
                .limits(ToolLimits::default().with_rounds(60).with_calls(200).with_calls_per_tool(200))
                .build()
                .unwrap(),
        )
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .tool(FnTool::new(work, |_: Value| async { Ok("done") }))
        .build()
        .unwrap()
}

fn rounds(rounds: usize) -> Vec<Reply> {
    let calls = (0..rounds).map(|round| {
        ChatTranscript::new("m")
            .tool_call(0, &format!("call_{round}_a"), "work", &["{}"])
            .tool_call(1, &format!("call_{round}_b"), "work", &["{}"])
            .finish("tool_calls")
    });
    let answer = ChatTranscript::new("m").text("All ").text("done.").finish("stop");
    calls.chain([answer]).map(|transcript| Reply::sse(transcript.done())).collect()
}

/// Runs fifty rounds and gives the number of connections that the server accepted.
async fn fifty_rounds() -> usize {
    let server = ReplayServer::start(rounds(50)).await.unwrap();
    let response = client(&server).prompt().user("go").conversation("c").call().await.unwrap();
    assert_eq!(response.text(), "All done.");
    let counts = server.counts();
    assert_eq!(counts.requests, 51);
    // Each request holds what the one before held, the answer and its two results.
    let lengths: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.json().unwrap()["messages"].as_array().unwrap().len())
        .collect();
    assert!(lengths.windows(2).all(|pair| pair[1] == pair[0] + 3), "{lengths:?}");
    counts.connections
}

#[tokio::test]
async fn a_turn_of_fifty_rounds_makes_one_connection() {
    assert_eq!(fifty_rounds().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_several_threads_a_turn_of_fifty_rounds_makes_at_most_two_connections() {
    // The pool gets a connection back a moment after its body has ended; these tools take no time at all.
    assert!(fifty_rounds().await <= 2);
}

#[tokio::test]
async fn dropping_a_turn_closes_the_connection() {
    let said = ChatTranscript::new("m").text("Hel").without_done();
    let all = ChatTranscript::new("m").text("Hel").text("lo").finish("stop").done();
    let server = ReplayServer::start([Reply::sse(all).stall_after(said.len())]).await.unwrap();
    let mut turn = client(&server).prompt().user("go").conversation("c").stream();
    while let Some(chunk) = turn.next().await {
        if chunk.unwrap().text().is_some() {
            break;
        }
    }
    drop(turn);
    server.disconnected().await;
}

async fn outcome(reply: Reply) -> (Result<String>, usize) {
    let server = ReplayServer::start([reply]).await.unwrap();
    let outcome = client(&server).prompt().user("go").conversation("c").call().await;
    (outcome.map(|response| response.text()), server.counts().requests)
}

#[tokio::test]
async fn failures_of_the_server_come_out_typed_and_the_conversation_goes_on() {
    let cut = ChatTranscript::new("m").text("Half").without_done();
    type Expected = fn(&Error) -> bool;
    let table: Vec<(Reply, Expected)> = vec![
        (Reply::json(401, json!({"error": {"message": "bad key"}})), |error| {
            error.kind() == ErrorKind::Authentication
        }),
        (Reply::sse(cut.clone()), |error| error.kind() == ErrorKind::Truncated && error.partial().is_some()),
        (Reply::html(200, "<html>login</html>"), |error| matches!(error.kind(), ErrorKind::Protocol { .. })),
        (
            Reply::sse(
                ChatTranscript::new("m")
                    .text("Half")
                    .raw(json!({"error": {"message": "boom", "type": "server_error"}}))
                    .done(),
            ),
            |error| matches!(error.kind(), ErrorKind::Provider { .. }) && error.emitted(),
        ),
    ];
    for (reply, expected) in table {
        let (outcome, _) = outcome(reply).await;
        let error = outcome.unwrap_err();
        assert!(expected(&error), "{error:?}");
    }
}
