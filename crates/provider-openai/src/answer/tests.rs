//! Tests of `answer`.

mod events;
mod odd;
mod think_tags;

use advisor_core::{
    AggregatorSettings, Block, BlockContent, ChatResponse, ErrorKind, FinishReason, Media, ProviderData,
    Result,
};
use advisor_test_support::decoding::read_answer;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use provider_http::answer::{AnswerDecoder, End};
use provider_http::redaction::Redaction;
use provider_http::sse::SseLimits;
use serde_json::json;

use super::*;
use crate::wire::FORMAT;

type Decoder = AnswerDecoder<ChatCompletions>;

fn decoder() -> Decoder {
    decoder_with(ThinkTags::AsText, SseLimits::default())
}

fn decoder_with(tags: ThinkTags, limits: SseLimits) -> Decoder {
    AnswerDecoder::new(ChatCompletions::new(tags, FORMAT.into()), limits, Redaction::default())
}

/// Reads a body in these pieces. Returns the outcome, and the progress when it ended.
fn read_with(decoder: Decoder, pieces: &[&[u8]]) -> (Result<ChatResponse>, End) {
    let read = read_answer(decoder, AggregatorSettings::default(), pieces);
    (read.response, read.end)
}

fn read(body: &[u8]) -> (Result<ChatResponse>, End) {
    let read = |pieces: &[&[u8]]| read_answer(decoder(), AggregatorSettings::default(), pieces);
    let (whole, bytes) = (read(&[body]), body.chunks(1).collect::<Vec<_>>());
    whole.assert_same(&read(&bytes), "byte by byte");
    (whole.response, whole.end)
}

fn kind(body: &str) -> ErrorKind {
    read(body.as_bytes()).0.expect_err(body).kind()
}

fn text(body: &str) -> String {
    read(body.as_bytes()).0.expect(body).text()
}

const HI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const ERROR: &str = "data: {\"error\":{\"message\":\"m\",\"code\":502}}\n\n";

#[test]
fn every_row_of_the_end_table() {
    let failed = ErrorKind::Provider { status: Some(502) };
    let completed = |body: &str, end: End| {
        let (response, came) = read(body.as_bytes());
        let response = response.expect(body);
        assert_eq!((response.text().as_str(), came), ("Hi", end), "{body}");
        response
    };
    // A finish reason, then the end marker or the end of the body.
    assert_eq!(completed(&[HI, STOP, DONE].concat(), End::Done).finish.reason, FinishReason::Stop);
    assert!(!completed(&[HI, STOP].concat(), End::Finished).finish.inferred);
    // The end marker without a finish reason.
    assert!(completed(&[HI, DONE].concat(), End::Done).finish.inferred);
    // Neither of them.
    assert_eq!(kind(HI), ErrorKind::Truncated);
    assert_eq!(kind(""), ErrorKind::Truncated);
    // An error, also after a finish reason.
    assert_eq!(kind(&[HI, ERROR].concat()), failed);
    assert_eq!(kind(&[HI, STOP, ERROR].concat()), failed);
    assert_eq!(kind(&[HI, STOP, ERROR, DONE].concat()), failed);
    // After the end marker, only usage counts.
    let usage = "data: {\"choices\":[{\"delta\":{\"content\":\"!\"}}],\"usage\":{\"prompt_tokens\":3}}\n\n";
    let after = [HI, STOP, DONE, "data: null\n\n", ERROR, "data: {broken\n\n", usage, DONE].concat();
    assert_eq!(completed(&after, End::Done).usage.and_then(|usage| usage.input_tokens), Some(3));
}

fn event(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}))
}

/// As OpenAI streams it: each piece is encoded by itself, and the last one says when the server forgets the audio.
#[test]
fn audio_in_pieces_is_media_after_its_transcript() {
    let pieces = [&b"RIFF"[..], b"\x10\0\0", b"\0WAVE", b"fmt 1", b"2"];
    let audio = |audio: Value| event(&json!({ "audio": audio }));
    let words = ["Good", " morning", "", "", ""];
    let mut body = event(&json!({"role": "assistant", "refusal": null}));
    for (piece, word) in pieces.iter().zip(words) {
        body += &audio(json!({"id": "audio_1", "transcript": word}));
        body += &audio(json!({"id": "audio_1", "data": STANDARD.encode(piece)}));
    }
    body += &audio(json!({"id": "audio_1", "expires_at": 1_900_000_000}));
    let media = Media::from_bytes("audio/wav", pieces.concat());
    let data = json!({"audio": {"id": "audio_1", "expires_at": 1_900_000_000}});
    let expected = [
        Block::text("Good morning"),
        Block::with_data(BlockContent::Media(media), vec![ProviderData::new(FORMAT, data)]),
    ];
    for end in [[STOP, DONE].concat(), STOP.to_owned(), DONE.to_owned()] {
        let body = [&*body, &*end].concat();
        let check = |(outcome, _): (Result<ChatResponse>, End), how: &str| {
            assert_eq!(outcome.expect(how).message().blocks(), expected, "{how}");
        };
        check(read(body.as_bytes()), "whole");
        for at in 0..body.len() {
            let (before, after) = body.as_bytes().split_at(at);
            check(read_with(decoder(), &[before, after]), "in two pieces");
        }
    }
    // An answer that is cut keeps its words.
    assert_eq!(kind(&body), ErrorKind::Truncated);
}

#[test]
fn law_r1_audio_is_bounded() {
    let piece = event(&json!({"audio": {"data": "A".repeat(4 << 20)}}));
    let mut decoder = decoder();
    let mut kept = 0;
    let failed = (0..30).find_map(|_| {
        decoder.push(piece.clone().into());
        let failed = std::iter::from_fn(|| decoder.next()).find_map(Result::err);
        kept += usize::from(failed.is_none());
        failed
    });
    assert_eq!((failed.map(|error| error.kind()), kept), (Some(ErrorKind::TooLarge), 64 / 3));
}

#[test]
fn groqs_error_is_one() {
    let event =
        "data: {\"choices\":[{\"delta\":{}}],\"x_groq\":{\"id\":\"r\",\"error\":\"over_capacity\"}}\n\n";
    for before in ["", HI, &[HI, STOP].concat()] {
        let error = read([before, event, DONE].concat().as_bytes()).0.expect_err("an error");
        assert_eq!(error.kind(), ErrorKind::Provider { status: None });
        let said = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(said.as_deref(), Some("the provider said: over_capacity"));
    }
}

proptest! {
    /// An event that is like the one before is not read. With a name of its own it is, and means the same.
    #[test]
    fn law_s5_repeated_events_mean_the_same(
        events in vec((0..3_usize, 0..12_usize, 0..9_usize, 0..7_usize), 1..24),
        tags in select(vec![ThinkTags::AsText, ThinkTags::Leading, ThinkTags::OpenedByPrompt]),
    ) {
        const TEXTS: [&str; 9] = ["a", "bc", " ", "<think>", "</think>", "content", r"\n", r"\ud83d", "é"];
        const ENDS: [&str; 7] = [
            "", "", r#","obfuscation":"a""#, r#","p":"content""#, r#","usage":null"#,
            r#","usage":{"prompt_tokens":1,"completion_tokens":2}"#, r#","usage": {"total_tokens":12}"#,
        ];
        let event = |(index, kind, text, end): &(usize, usize, usize, usize)| {
            let (text, end) = (TEXTS[*text], ENDS[*end]);
            let delta = match kind {
                0..5 => format!(r#""content":"{text}""#),
                5 => format!(r#""content":"{text}","token_id":{index},"text":"{text}""#),
                6 => format!(r#""reasoning":"{text}""#),
                7 => format!(r#""reasoning":"{text}","reasoning_details":[{{"text":"{text}"}}]"#),
                8 => format!(r#""tool_calls":[{{"index":0,"id":"c","function":{{"name":"f","arguments":"{text}"}}}}]"#),
                9 | 10 => format!(r#""tool_calls":[{{"index":0,"function":{{"arguments":"{text}"}}}}]"#),
                _ => r#""role":"assistant""#.to_owned(),
            };
            format!(r#"data: {{"choices":[{{"index":{},"delta":{{{delta}}}}}]{end}}}"#, index / 2)
        };
        let bodies = [false, true].map(|is_named| {
            let events = events.iter().map(event).enumerate();
            let framed = events.map(|(at, event)| if is_named { format!("event: {at}\n{event}\n\n") } else { event + "\n\n" });
            framed.collect::<String>() + DONE
        });
        let [repeated, named] = bodies.map(|body| {
            let decoder = decoder_with(tags, SseLimits::default());
            read_answer(decoder, AggregatorSettings::default(), &[body.as_bytes()])
        });
        prop_assert_eq!(&repeated.chunks, &named.chunks);
        named.assert_same(&repeated, "repeated");
    }
}

#[test]
fn text_that_is_a_number_is_not_found_in_another_place() {
    let event =
        |id: u8| format!("data: {{\"id\":\"{id}\",\"choices\":[{{\"delta\":{{\"content\":7}}}}]}}\n\n");
    assert_eq!(text(&[&*event(7), &event(7), &event(8), STOP].concat()), "777");
}

#[test]
fn errors_come_in_many_shapes() {
    let cases = [
        ("data: {\"error\":\"plain\"}\n\n", ErrorKind::Provider { status: None }),
        (
            "data: {\"error\":[{\"message\":\"m\",\"code\":503}]}\n\n",
            ErrorKind::Provider { status: Some(503) },
        ),
        (
            "data: [{\"error\":{\"message\":\"m\",\"code\":503}}]\n\n",
            ErrorKind::Provider { status: Some(503) },
        ),
        (
            "data: {\"choices\":[],\"error\":{\"message\":\"m\",\"code\":503}}\n\n",
            ErrorKind::Provider { status: Some(503) },
        ),
        ("data: {\"object\":\"error\",\"message\":\"m\",\"code\":400}\n\n", ErrorKind::InvalidRequest),
        (
            "data: {\"choices\":[{\"error\":{\"message\":\"m\",\"code\":503}}]}\n\n",
            ErrorKind::Provider { status: Some(503) },
        ),
        (
            "event: error\ndata: {\"message\":\"m\",\"code\":503}\n\n",
            ErrorKind::Provider { status: Some(503) },
        ),
        ("event: error\ndata: {\"what\":1}\n\n", ErrorKind::Provider { status: None }),
        ("event: error\ndata: upstream failed\n\n", ErrorKind::Provider { status: None }),
        ("{\"error\":{\"message\":\"m\",\"code\":503}}", ErrorKind::Provider { status: Some(503) }),
        ("[{\"error\":{\"message\":\"m\",\"code\":503}}]", ErrorKind::Provider { status: Some(503) }),
        ("{\"message\":\"m\",\"code\":\"rate_limit\"}", ErrorKind::RateLimited { retry_after: None }),
    ];
    for (body, expected) in cases {
        assert_eq!(kind(body), expected, "{body}");
    }
}

#[test]
fn law_r4_a_text_event_costs_no_allocation() {
    let event = "data: {\"id\":\"chatcmpl-0123456789\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"a-model-of-some-vendor\",\
        \"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null}],\"obfuscation\":\"x\"}\n\n";
    let body = Bytes::from(event.repeat(1000));
    let mut decoder = decoder();
    let mut texts = 0;
    let mut pass = |bytes: Bytes| {
        decoder.push(bytes);
        while let Some(Ok(delta)) = decoder.next() {
            texts += usize::from(delta == Delta::text(" word"));
        }
        texts
    };
    // The first events emit the origin. The second read is longer, so the buffer grows once.
    assert_eq!(pass(body.slice(..event.len() * 10)), 10);
    let memory = allocation_counter::measure(|| assert_eq!(pass(body.slice(event.len() * 10..)), 1000));
    assert!(memory.count_total <= 1, "{memory:?}");
}
