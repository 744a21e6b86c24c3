//! One answer of Anthropic's Messages API: from bytes to chunks.

use std::ops::Range;

use advisor_chain::anthropic::AnthropicModel;
use advisor_chain::{ChatClient, ChatRequest, Chunk, Message};
use bytes::Bytes;
use futures::StreamExt;

use super::{Case, runtime};
use crate::shapes::reads;
use crate::{InMemory, Shape};

const CHUNKS: (usize, usize) = (1000, 3000);

/// The beginning of a block, and the events in it.
const ANSWERS: [(&str, Shape); 3] = [
    (
        r#"{"type":"text","text":""}"#,
        Shape::new(
            "Anthropic",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"WORD"}SPACES}"#,
        ),
    ),
    (
        r#"{"type":"thinking","thinking":"","signature":""}"#,
        Shape::new(
            "Anthropic, thinking",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"WORD"}SPACES}"#,
        ),
    ),
    (
        r#"{"type":"tool_use","id":"toolu_01Js4AMfx5qpTLhwTusnvT68","name":"f","input":{}}"#,
        Shape::new(
            "Anthropic, arguments of a call",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"PIECE"}SPACES}"#,
        ),
    ),
];

/// The number of pieces of each block where thinking and text alternate.
const PIECES_OF_A_BLOCK: usize = 50;

pub(super) fn cases() -> Vec<Case> {
    let one =
        |(block, shape): (&'static str, Shape)| reading(shape.name, move |events| body(block, shape, events));
    ANSWERS.into_iter().map(one).chain([reading("Anthropic, blocks of 50 events", alternating)]).collect()
}

/// The model alone: events to chunks.
fn reading(name: &str, body: impl Fn(usize) -> Vec<Bytes> + 'static) -> Case {
    Case::new(format!("read, {name}"), "event", CHUNKS, move |events| {
        let transport = InMemory::new([body(events)]);
        let model = AnthropicModel::new("m").with_base_url("http://127.0.0.1:1").with_transport(transport);
        let chain = ChatClient::builder(model).build().unwrap().chain().clone();
        let runtime = runtime();
        move || {
            runtime.block_on(async {
                let mut stream = chain.next_stream(ChatRequest::new(Message::user("?"))).await.unwrap();
                let mut pieces = 0;
                while let Some(chunk) = stream.next().await {
                    pieces += usize::from(matches!(chunk.unwrap(), Chunk::Delta { .. }));
                }
                assert_eq!(pieces, events);
            });
        }
    })
}

/// Returns a whole body with `events` of these events in one block, in reads.
fn body(block: &str, shape: Shape, events: usize) -> Vec<Bytes> {
    message(block_of(0, block, shape, 0..events))
}

/// Returns a whole body of short blocks: thinking and text by turns.
fn alternating(events: usize) -> Vec<Bytes> {
    let begins = (0..events).step_by(PIECES_OF_A_BLOCK).zip(ANSWERS.into_iter().take(2).cycle());
    let blocks = begins.enumerate().map(|(index, (first, (block, shape)))| {
        block_of(index, block, shape, first..events.min(first + PIECES_OF_A_BLOCK))
    });
    message(blocks.flatten())
}

/// Returns the events of a block with these pieces.
fn block_of(index: usize, block: &str, shape: Shape, pieces: Range<usize>) -> Vec<String> {
    let begin = format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#);
    let numbered =
        |piece: usize| shape.event(piece).replacen(r#""index":0"#, &format!(r#""index":{index}"#), 1);
    let said = pieces.map(|piece| frame("content_block_delta", &numbered(piece)));
    let end = format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
    let begin = std::iter::once(frame("content_block_start", &begin));
    begin.chain(said).chain([frame("content_block_stop", &end)]).collect()
}

/// Returns a whole body with these events between its beginning and its end, in reads.
fn message(events: impl IntoIterator<Item = String>) -> Vec<Bytes> {
    let start = r#"{"type":"message_start","message":{"id":"r","model":"m","content":[],"usage":{"input_tokens":9}}}"#;
    let tail = [
        frame("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#),
        frame("message_stop", r#"{"type":"message_stop"}"#),
    ];
    let said: Vec<String> = events.into_iter().collect();
    let head = Bytes::from(frame("message_start", start));
    std::iter::once(head).chain(reads(&said)).chain(tail.map(Bytes::from)).collect()
}

fn frame(name: &str, event: &str) -> String {
    format!("event: {name}\ndata: {event}\n\n")
}
