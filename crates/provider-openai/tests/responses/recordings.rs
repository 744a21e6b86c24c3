//! Recorded streams over a connection.

use advisor_core::{BlockKind, ChatResponse, Result};
use advisor_testkit::recordings::{self, Recording};
use advisor_testkit::{ReplayServer, Reply, split};
use serde_json::{Value, json};

use crate::{call_with, model, request};

/// The outcome in the form in which recordings are compared.
fn outcome(result: &Result<ChatResponse>) -> Value {
    let nothing = ChatResponse::from_choices(1, Vec::new());
    let (response, error) = match result {
        Ok(response) => (response, None),
        Err(error) => (error.partial().unwrap_or(&nothing), Some(error.to_string())),
    };
    let joined = |kind: BlockKind| -> String {
        response.blocks().filter_map(|(_, block)| block.content().text_of(kind)).collect()
    };
    let calls: Vec<Value> = response
        .tool_calls()
        .map(|(_, call)| json!({"id": call.id, "name": call.name, "arguments": call.arguments}))
        .collect();
    json!({
        "text": joined(BlockKind::Text),
        "reasoning": joined(BlockKind::Reasoning),
        "refusal": joined(BlockKind::Refusal),
        "tool_calls": calls,
        "finish_reason": response.finish().as_written,
        "usage": response.usage(),
        "error": error,
    })
}

async fn replay(recording: &Recording, reply: Reply) {
    let server = ReplayServer::start([reply]).await.expect("a port");
    let got = outcome(&call_with(&model(&server), request()).await);
    let differences = recording.differences(&got);
    assert!(differences.is_empty(), "{}: {differences:?}\n{got:#}", recording.name);
}

#[tokio::test]
async fn every_recording_replays_over_http_whole_and_split() {
    for recording in &recordings::all("openai-responses") {
        replay(recording, Reply::sse(recording.body.clone())).await;
        replay(recording, Reply::sse(recording.body.clone()).split_at(&recording.chunk_ends)).await;
    }
}

#[tokio::test]
async fn law_s5_every_recording_over_http_at_random_splits() {
    for recording in &recordings::all("openai-responses") {
        for seed in 0..10 {
            let offsets = split::random_offsets(recording.body.len(), seed, 2 << (seed % 7));
            replay(recording, Reply::sse(recording.body.clone()).split_at(&offsets)).await;
        }
    }
}
