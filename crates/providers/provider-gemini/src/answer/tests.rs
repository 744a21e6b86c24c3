//! Written transcripts: events of servers, with their chunks and response.

#![allow(clippy::needless_pass_by_value, reason = "the values are written where they are passed")]

mod calls;
mod content;
mod ends;
mod framing;

use advisor_core::{AggregatorSettings, Block, BlockContent, ChatResponse, Chunk, Error, FinishReason};
use advisor_test_support::decoding::{ReadAnswer, read_answer};
use advisor_testkit::split;
use proptest::collection::vec;
use proptest::{prop_assert_eq, proptest};
use provider_http::answer::AnswerDecoder;
use provider_http::redaction::Redaction;
use provider_http::sse::SseLimits;
use serde_json::{Value, json};

use super::GenerateContent;
use crate::wire::FORMAT;

fn format() -> GenerateContent {
    GenerateContent::new(FORMAT.into())
}

/// Reads a body in pieces.
fn read_pieces(pieces: &[&[u8]]) -> ReadAnswer {
    let decoder = AnswerDecoder::new(format(), SseLimits::default(), Redaction::default());
    read_answer(decoder, AggregatorSettings::default(), pieces)
}

/// Reads events as server-sent events, and checks that every other framing and split gives the same.
fn read(events: &[Value]) -> ReadAnswer {
    let sse = sse(events, "\r\n");
    let whole = read_pieces(&[&sse]);
    for body in [&sse, &self::sse(events, "\n"), &array(events)] {
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_same(&whole, &read_pieces(&[body]), "whole");
        assert_same(&whole, &read_pieces(&bytes), "byte by byte");
        for split in split::random_splits(body, 7, 10) {
            assert_same(&whole, &read_pieces(&split.pieces), "at random splits");
        }
    }
    whole
}

fn assert_same(expected: &ReadAnswer, other: &ReadAnswer, how: &str) {
    assert_eq!(other.chunks, expected.chunks, "{how}");
    expected.assert_same(other, how);
}

fn sse(events: &[Value], line_end: &str) -> Vec<u8> {
    events.iter().flat_map(|event| format!("data: {event}{line_end}{line_end}").into_bytes()).collect()
}

/// One JSON array with line breaks.
fn array(events: &[Value]) -> Vec<u8> {
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    format!("[{}\n]", events.join("\n,\n")).into_bytes()
}

/// An event with these parts.
fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}], "modelVersion": "m"})
}

fn text(text: &str) -> Value {
    parts(json!([{ "text": text }]))
}

/// The last event.
fn finish(reason: &str) -> Value {
    json!({"candidates": [{"finishReason": reason, "index": 0}]})
}

fn stop() -> Value {
    finish("STOP")
}

/// The blocks of an answer that completes.
fn blocks(events: &[Value]) -> Vec<Block> {
    let response = read(events).response;
    response.expect("an answer").message().blocks().to_vec()
}

/// The data that goes back to Gemini with a block.
fn data(block: &Block) -> Vec<Value> {
    block
        .provider_data()
        .iter()
        .filter(|data| data.format == *"gemini")
        .map(|data| data.value.clone())
        .collect()
}

/// The name and the arguments of each call that a tool loop would run.
fn runnable(response: &ChatResponse) -> Vec<(String, Value)> {
    let calls = response.tool_calls().map(|(_, call)| call).filter(|call| call.complete);
    calls.filter_map(|call| Some((call.name.to_string(), call.parsed_arguments().ok()?))).collect()
}

fn kind_of(block: &Block) -> &'static str {
    match block.content() {
        BlockContent::Text(_) => "text",
        BlockContent::Reasoning(_) => "reasoning",
        BlockContent::Media(_) => "media",
        BlockContent::Citation(_) => "citation",
        BlockContent::ToolCall(_) => "call",
        BlockContent::Opaque(_) => "opaque",
        _ => "other",
    }
}

proptest! {
    /// An event that is like the one before is not read. With a key of its own it is, and means the same.
    #[test]
    fn law_s5_repeated_events_mean_the_same(events in vec((0..6_usize, 0..5_usize, 0..5_usize), 1..40)) {
        const TEXTS: [&str; 5] = ["a", "bc", "parts", r"\u0061", "é"];
        const ENDS: [&str; 5] = [
            "", r#","usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1}"#, r#","usageMetadata":null"#,
            r#","usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 12}"#, r#","responseId":"a""#,
        ];
        let event = |(kind, text, end): &(usize, usize, usize)| {
            let (text, end) = (TEXTS[*text], ENDS[*end]);
            let part = match kind {
                0..3 => format!(r#"{{"text":"{text}"}}"#),
                3 => format!(r#"{{"text":"{text}","thought":true}}"#),
                4 => format!(r#"{{"text":"{text}","thoughtSignature":"s"}}"#),
                _ => r#"{"functionCall":{"name":"f","args":{}}}"#.to_owned(),
            };
            format!(r#""candidates":[{{"content":{{"parts":[{part}]}}}}]{end}}}"#)
        };
        let [repeated, numbered] = [false, true].map(|is_numbered| {
            let key = |at: usize| if is_numbered { format!(r#""{at}":0,"#) } else { String::new() };
            let framed = events.iter().enumerate().map(|(at, piece)| format!("data: {{{}{}\n\n", key(at), event(piece)));
            read_pieces(&[(framed.collect::<String>() + "data: [DONE]\n\n").as_bytes()])
        });
        prop_assert_eq!(&repeated.chunks, &numbered.chunks);
        numbered.assert_same(&repeated, "repeated");
    }
}
