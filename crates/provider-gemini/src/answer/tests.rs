//! Written transcripts: what servers send, and the chunks and the response that it becomes.

#![allow(clippy::needless_pass_by_value, reason = "the values are written where they are passed")]

mod calls;
mod content;
mod documented;
mod ends;
mod framing;

use std::collections::VecDeque;

use advisor_core::{
    AggregatorSettings, Block, BlockContent, ChatResponse, Chunk, Error, MessageAggregator, Result,
};
use advisor_testkit::split;
use bytes::Bytes;
use provider_http::answer::AnswerDecoder;
use provider_http::redaction::Redaction;
use provider_http::sse::SseLimits;
use serde_json::{Value, json};

use super::GenerateContent;
use crate::wire::FORMAT;

/// The chunks and the response of an answer.
type Outcome = (Vec<Chunk>, Result<ChatResponse>);

/// Reads a body in pieces.
fn read_pieces(pieces: &[&[u8]], choices: u32, fast: bool) -> Outcome {
    let mut settings = AggregatorSettings::default();
    settings.choices = choices;
    let mut aggregator = MessageAggregator::with_settings(1, settings);
    let decoder = AnswerDecoder::new(
        GenerateContent::new(FORMAT.into(), choices),
        choices,
        SseLimits::default(),
        Redaction::default(),
    );
    let mut decoder = if fast { decoder } else { decoder.without_fast_path() };
    let mut chunks = VecDeque::new();
    let mut take = |decoder: &mut AnswerDecoder<GenerateContent>| -> Result<()> {
        let mut ready = VecDeque::new();
        loop {
            decoder.take_ready(&mut ready);
            let batch = ready.drain(..).map(Ok);
            let next: Vec<_> = batch.chain(decoder.next()).collect();
            if next.is_empty() {
                return Ok(());
            }
            for delta in next {
                aggregator.push(delta?, &mut chunks)?;
            }
        }
    };
    let read = || {
        for piece in pieces {
            decoder.push(Bytes::copy_from_slice(piece));
            take(&mut decoder)?;
        }
        decoder.finish();
        take(&mut decoder)
    };
    let read: Result<()> = { read }();
    let response = match read {
        Ok(()) => aggregator.finish(&mut chunks).map_err(Error::from),
        Err(error) => Err(error.or_partial(aggregator.partial())),
    };
    (chunks.into(), response)
}

/// Reads events as server-sent events, and checks that every other framing and split gives the same.
fn read(events: &[Value]) -> Outcome {
    read_choices(events, 1)
}

fn read_choices(events: &[Value], choices: u32) -> Outcome {
    let sse = sse(events, "\r\n");
    let whole = read_pieces(&[&sse], choices, true);
    for body in [&sse, &self::sse(events, "\n"), &array(events)] {
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_same(&whole, &read_pieces(&[body], choices, true), "whole");
        assert_same(&whole, &read_pieces(&[body], choices, false), "without the fast path");
        assert_same(&whole, &read_pieces(&bytes, choices, true), "byte by byte");
        for split in split::random_splits(body, 7, 10) {
            assert_same(&whole, &read_pieces(&split.pieces, choices, true), "at random splits");
        }
    }
    whole
}

fn assert_same(expected: &Outcome, other: &Outcome, how: &str) {
    assert_eq!(other.0, expected.0, "{how}");
    match (&expected.1, &other.1) {
        (Ok(expected), Ok(other)) => assert_eq!(other, expected, "{how}"),
        (Err(expected), Err(other)) => {
            assert_eq!((other.kind(), other.to_string()), (expected.kind(), expected.to_string()), "{how}");
            assert_eq!(other.partial(), expected.partial(), "{how}");
        }
        (expected, other) => panic!("{how}: {other:?} in place of {expected:?}"),
    }
}

fn sse(events: &[Value], line_end: &str) -> Vec<u8> {
    events.iter().flat_map(|event| format!("data: {event}{line_end}{line_end}").into_bytes()).collect()
}

/// One JSON array with line breaks, as Google sends it.
fn array(events: &[Value]) -> Vec<u8> {
    let pretty: Vec<String> =
        events.iter().map(|event| serde_json::to_string_pretty(event).expect("JSON")).collect();
    format!("[{}\n]", pretty.join("\n,\n")).into_bytes()
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
    let (_, response) = read(events);
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
