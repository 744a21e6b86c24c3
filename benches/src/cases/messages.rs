//! One answer of Anthropic's Messages API: from bytes to chunks.

use advisor_chain::anthropic::AnthropicModel;
use advisor_chain::{AdvisorChain, ChatRequest, Chunk, Message};
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

pub(super) fn cases() -> Vec<Case> {
    ANSWERS.into_iter().map(|(block, shape)| reading(block, shape)).collect()
}

/// The model alone: events to chunks.
fn reading(block: &'static str, shape: Shape) -> Case {
    Case::new(format!("read, {}", shape.name), "event", CHUNKS, move |events| {
        let transport = InMemory::new([body(block, shape, events)]);
        let model = AnthropicModel::new("m").with_base_url("http://127.0.0.1:1").with_transport(transport);
        let chain = AdvisorChain::builder(model).build().unwrap();
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
    let start = r#"{"type":"message_start","message":{"id":"r","model":"m","content":[],"usage":{"input_tokens":9}}}"#;
    let begin = format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
    let said: Vec<String> =
        (0..events).map(|number| frame("content_block_delta", &shape.event(number))).collect();
    let head = [frame("message_start", start), frame("content_block_start", &begin)];
    let tail = [
        frame("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
        frame("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#),
        frame("message_stop", r#"{"type":"message_stop"}"#),
    ];
    head.map(Bytes::from).into_iter().chain(reads(&said)).chain(tail.map(Bytes::from)).collect()
}

fn frame(name: &str, event: &str) -> String {
    format!("event: {name}\ndata: {event}\n\n")
}
