//! Replays recordings over HTTP.

use super::Recording;
use advisor_core::{Block, BlockKind, ChatModel, ChatRequest, ChatResponse, FinishReason, Message, Result};
use advisor_testkit::{ReplayServer, Reply, answer_of, split};
use serde_json::{Value, json};
use std::time::Duration;

/// The longest time of one replay.
const LIMIT: Duration = Duration::from_secs(120);
/// The most pieces of a body, each of which is a write of the server and a read of the client.
const MOST_PIECES: usize = 64 << 10;
/// The number of random splits of each body.
const RANDOM_SPLITS: u64 = 10;

impl Recording {
    /// Returns the reply of a server that sends the body in one piece, as a stream of its form.
    ///
    /// The forms are server-sent events, JSON objects in lines, and one JSON array.
    pub fn reply(&self) -> Reply {
        let first = self.body.iter().find(|byte| !byte.is_ascii_whitespace());
        let content_type = match first {
            Some(b'{') => "application/x-ndjson",
            Some(b'[') => "application/json",
            _ => "text/event-stream",
        };
        Reply::sse(self.body.clone()).with_header("content-type", content_type)
    }
}

/// Returns an answer, or the partial answer of an error, in the form that [`Recording::differences`] compares.
pub fn outcome(result: &Result<ChatResponse>) -> Value {
    let nothing = ChatResponse::from_blocks(1, [], FinishReason::Empty);
    let (response, error) = match result {
        Ok(response) => (response, None),
        Err(error) => (error.partial().unwrap_or(&nothing), Some(error.to_string())),
    };
    let blocks: Vec<&Block> = response.blocks().map(|(_, block)| block).collect();
    let joined = |kind| blocks.iter().filter_map(|block| block.content().text_of(kind)).collect::<String>();
    let calls: Vec<Value> = response
        .tool_calls()
        .map(|(_, call)| json!({"id": call.id, "name": call.name, "arguments": call.arguments}))
        .collect();
    json!({
        "text": joined(BlockKind::Text),
        "reasoning": joined(BlockKind::Reasoning),
        "refusal": joined(BlockKind::Refusal),
        "tool_calls": calls,
        "finish_reason": response.finish.as_written,
        "usage": response.usage.as_ref(),
        "error": error,
    })
}

/// Replays recordings over HTTP to a model, and compares its answers with the expected results.
///
/// Each body is sent whole, in the chunks of the recorded network, byte by byte, and at random splits. Each piece is
/// one chunk of HTTP. `model` makes the model that asks the server; it must not repeat a failed request.
///
/// A body of more than 64 KiB is sent in 65,536 pieces at most, of a few bytes each. For every byte of such a body use
/// [`assert_same_byte_by_byte`](super::assert_same_byte_by_byte), which needs no network.
///
/// # Panics
///
/// With the name of the recording, if an answer differs from the expected one or takes too long. Also if no port of
/// 127.0.0.1 can be bound.
#[allow(
    clippy::expect_used,
    clippy::panic,
    reason = "this is a check for tests: a difference has to be seen"
)]
pub async fn assert_replays<'a, M: ChatModel>(
    recordings: impl IntoIterator<Item = &'a Recording>,
    model: impl Fn(&Recording, &ReplayServer) -> M,
) {
    for recording in recordings {
        for reply in replies(recording) {
            let pieces = reply.pieces().len();
            let server = ReplayServer::start([reply]).await.expect("a port");
            let model = model(recording, &server);
            let answer = tokio::time::timeout(LIMIT, replayed(&model)).await;
            let Ok(result) = answer else { panic!("{} in {pieces} pieces: no end", recording.name) };
            let got = outcome(&result);
            let differences = recording.differences(&got);
            assert!(
                differences.is_empty(),
                "{} in {pieces} pieces: {differences:?}\n{got:#}",
                recording.name
            );
        }
    }
}

fn replies(recording: &Recording) -> impl Iterator<Item = Reply> {
    let whole = || recording.reply();
    let random = (0..RANDOM_SPLITS).map(move |seed| {
        // From a few pieces to many.
        let pieces = 2 << (seed % 7);
        whole().split_at(&split::random_offsets(recording.body.len(), seed, pieces))
    });
    let smallest = recording.body.len().div_ceil(MOST_PIECES);
    [whole(), whole().split_at(&recording.chunk_ends), whole().split_every(smallest)]
        .into_iter()
        .chain(random)
}

/// Asks, and reads to the end.
async fn replayed(model: &impl ChatModel) -> Result<ChatResponse> {
    answer_of(model, ChatRequest::new(Message::user("Hello"))).await
}
