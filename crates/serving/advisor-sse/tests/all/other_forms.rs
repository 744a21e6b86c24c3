//! Lines of JSON.

use advisor_core::{ChatResponse, Chunk, FinishReason, Message, MessageList, StreamItem};
use advisor_sse::{Encoder, Frames, JsonLines};

use crate::table::encode;
use crate::turns;

#[tokio::test]
async fn lines_of_json_are_the_chunks() {
    for (name, turn) in turns::all().await {
        let lines = encode(Box::new(JsonLines), Frames::new(), &turn);
        let read = lines.lines().filter_map(|line| match StreamItem::from_json(line).unwrap() {
            StreamItem::Chunk(chunk) => Some(chunk),
            _ => None,
        });
        let read: Vec<Chunk> = read.collect();
        let chunks: Vec<Chunk> = turn.into_iter().filter_map(Result::ok).collect();
        assert_eq!(read, chunks, "{name}");
        assert!(lines.starts_with("{\"type\":\"begin\",\"version\":1}\n"), "{name}");
    }
}

#[test]
fn hidden_messages_are_no_lines() {
    let hidden = Message::assistant("[canary]").hidden();
    let mut response = ChatResponse::new(1, Message::assistant("It is sunny."), FinishReason::Stop);
    response.transcript = MessageList::from(vec![hidden, response.message().clone()]);
    let turn = vec![Ok(Chunk::RoundCompleted(response.clone())), Ok(Chunk::Completed(response))];
    let stream = encode(Box::new(JsonLines), Frames::new(), &turn);
    assert!(!stream.contains("canary"), "{stream}");
    // In the answers and in the transcripts.
    assert_eq!(stream.matches("It is sunny.").count(), 4, "{stream}");
}

#[test]
fn keep_alive_of_lines_is_skipped() {
    let line = String::from_utf8(JsonLines.keep_alive().to_vec()).unwrap();
    assert!(matches!(StreamItem::from_json(&line), Ok(StreamItem::Unknown)));
}
