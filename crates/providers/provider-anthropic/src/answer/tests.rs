//! Written transcripts of the Messages API. Each gives the same chunks at any split.

mod blocks;
mod ends;

use advisor_core::{AggregatorSettings, BlockContent, BlockKind, ChatResponse, Chunk, Error, Result};
use advisor_test_support::decoding::{ReadAnswer, read_answer};
use advisor_testkit::split;
use proptest::collection::vec;
use proptest::prelude::*;
use provider_http::answer::AnswerDecoder;
use provider_http::redaction::Redaction;
use provider_http::sse::SseLimits;
use serde_json::{Value, json};

use super::*;
use crate::wire::FORMAT;

fn read(pieces: &[&[u8]]) -> ReadAnswer {
    let redaction = Redaction::default();
    let decoder = AnswerDecoder::new(Messages::new(FORMAT.into()), SseLimits::default(), redaction);
    read_answer(decoder, AggregatorSettings::default(), pieces)
}

/// Reads a body whole, byte by byte and at random splits, which give the same chunks.
pub(super) fn result_of(body: &[u8]) -> (Vec<Chunk>, Result<ChatResponse>) {
    let whole = read(&[body]);
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    let random: Vec<Vec<&[u8]>> = split::random_splits(body, 7, 10).map(|split| split.pieces).collect();
    for pieces in [bytes].iter().chain(&random) {
        let other = read(pieces);
        let pieces: Vec<_> = pieces.iter().map(|piece| String::from_utf8_lossy(piece)).collect();
        assert_eq!(other.chunks, whole.chunks, "{pieces:?}");
        whole.assert_same(&other, &format!("{pieces:?}"));
    }
    (whole.chunks, whole.response)
}

/// Frames events, each with its name, and with as much padding as Anthropic adds.
pub(super) fn sse(events: &[Value]) -> Vec<u8> {
    let framed = events.iter().enumerate().map(|(place, event)| {
        let name = event["type"].as_str().unwrap_or("unnamed");
        let json = event.to_string();
        let (json, end) = json.split_at(json.len() - 1);
        format!("event: {name}\ndata: {json}{}{end}\n\n", " ".repeat(place * 5 % 7))
    });
    framed.collect::<String>().into_bytes()
}

pub(super) fn response_to(events: &[Value]) -> ChatResponse {
    result_of(&sse(events)).1.expect("a complete answer")
}

pub(super) fn error_of(events: &[Value]) -> Error {
    result_of(&sse(events)).1.expect_err("a failed answer")
}

pub(super) fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "claude-x", "content": [], "stop_reason": null, "usage": {"input_tokens": 9, "output_tokens": 1}}})
}

#[allow(clippy::needless_pass_by_value, reason = "the values are made for it")]
pub(super) fn open(index: i64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

pub(super) fn text(index: i64) -> Value {
    open(index, json!({"type": "text", "text": ""}))
}

pub(super) fn tool(index: i64, id: &str, name: &str) -> Value {
    open(index, json!({"type": "tool_use", "id": id, "name": name, "input": {}}))
}

#[allow(clippy::needless_pass_by_value, reason = "the values are made for it")]
pub(super) fn delta(index: i64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

pub(super) fn say(index: i64, text: &str) -> Value {
    delta(index, json!({"type": "text_delta", "text": text}))
}

pub(super) fn think(index: i64, text: &str) -> Value {
    delta(index, json!({"type": "thinking_delta", "thinking": text}))
}

pub(super) fn sign(index: i64, signature: &str) -> Value {
    delta(index, json!({"type": "signature_delta", "signature": signature}))
}

pub(super) fn input(index: i64, piece: &str) -> Value {
    delta(index, json!({"type": "input_json_delta", "partial_json": piece}))
}

pub(super) fn stop(index: i64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

pub(super) fn finish(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": 5}})
}

pub(super) fn end() -> Value {
    json!({"type": "message_stop"})
}

pub(super) fn ping() -> Value {
    json!({"type": "ping"})
}

/// The calls of an answer that a tool loop would run, with their arguments as written.
pub(super) fn runnable(response: &ChatResponse) -> Vec<(String, String)> {
    let calls = response.tool_calls().map(|(_, call)| call).filter(|call| call.complete);
    calls.map(|call| (call.name.to_string(), call.arguments.clone())).collect()
}

/// The kinds of the blocks, in order.
pub(super) fn kinds(response: &ChatResponse) -> Vec<BlockKind> {
    response.blocks().map(|(_, block)| block.kind()).collect()
}

pub(super) fn reasoning(response: &ChatResponse) -> String {
    response.blocks().filter_map(|(_, block)| block.content().text_of(BlockKind::Reasoning)).collect()
}

/// The opaque blocks: their names and values.
pub(super) fn opaque(response: &ChatResponse) -> Vec<(String, Value)> {
    let contents = response.blocks().map(|(_, block)| block.content());
    let opaque = contents.filter_map(|content| match content {
        BlockContent::Opaque(opaque) => Some((opaque.name.to_string(), opaque.value.clone())),
        _ => None,
    });
    opaque.collect()
}

#[test]
fn law_r1_kept_blocks_count() {
    let mut format = Messages::new(FORMAT.into());
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    for event in [open(0, search), input(0, &"x".repeat(1000)), input(0, &"x".repeat(1000))] {
        let event = event.to_string();
        format.read(AnswerEvent { name: None, data: &event }, &mut VecDeque::new()).expect("JSON");
    }
    assert!(format.kept() > 2000);
    format.end_block(Some(0), &mut VecDeque::new());
    assert_eq!(format.kept(), 0);
}

#[test]
fn law_r1_blocks_without_end_are_bounded() {
    let mut events = vec![start()];
    events.extend((0..200).map(text));
    events.extend([say(199, "a"), say(0, "b"), finish("end_turn"), end()]);
    let response = response_to(&events);
    assert_eq!(response.text(), "ab", "the last block takes what belongs to none");
}

proptest! {
    /// An event that is like the ones before is not read. With a name of its own it is, and means the same.
    #[test]
    fn law_s5_repeated_events_mean_the_same(
        events in vec((0..2_usize, 0..9_usize, 0..7_usize, 0..7_usize), 1..40),
    ) {
        const TEXTS: [&str; 7] = ["a", "bc", " ", "text_delta", r"\u0061", r"\n", "é"];
        let event = |(index, kind, text, other): &(usize, usize, usize, usize)| {
            let (text, other) = (TEXTS[*text], TEXTS[*other]);
            let (kind, piece) = match kind {
                0..4 => ("delta", format!(r#""delta":{{"type":"text_delta","text":"{text}"}}"#)),
                4 => ("delta", format!(r#""delta":{{"type":"thinking_delta","thinking":"{text}"}}"#)),
                5 => ("delta", format!(r#""delta":{{"type":"input_json_delta","partial_json":"{text}"}}"#)),
                6 => ("start", format!(r#""content_block":{{"type":"text","text":"{text}"}}"#)),
                7 => ("start", r#""content_block":{"type":"tool_use","id":"c","name":"f","input":{}}"#.to_owned()),
                _ => ("stop", r#""more":[]"#.to_owned()),
            };
            format!(r#"data: {{"type":"content_block_{kind}","index":{index},{piece},"p":"{other}"}}"#)
        };
        let [repeated, named] = [false, true].map(|is_named| {
            let name = |at: usize| if is_named { format!("event: {at}\n") } else { String::new() };
            let framed = events.iter().enumerate().map(|(at, piece)| format!("{}{}\n\n", name(at), event(piece)));
            let body = framed.collect::<String>() + "data: {\"type\":\"message_stop\"}\n\n";
            read(&[body.as_bytes()])
        });
        prop_assert_eq!(&repeated.chunks, &named.chunks);
        named.assert_same(&repeated, "repeated");
    }
}
