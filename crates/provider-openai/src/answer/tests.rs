//! Tests of `answer`.

mod documented;
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
    assert_eq!(completed(&[HI, STOP, DONE].concat(), End::Done).finish().reason, FinishReason::Stop);
    assert!(!completed(&[HI, STOP].concat(), End::Finished).finish().inferred);
    // The end marker without a finish reason.
    assert!(completed(&[HI, DONE].concat(), End::Done).finish().inferred);
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
    assert_eq!(completed(&after, End::Done).usage().and_then(|usage| usage.input_tokens), Some(3));
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
fn audio_of_a_whole_answer_is_media() {
    let audio = json!({"id": "audio_1", "data": "SUQz", "expires_at": 1, "transcript": "Hi"});
    let message = json!({"role": "assistant", "content": null, "audio": audio});
    let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).to_string();
    let response = read(body.as_bytes()).0.expect("an answer");
    let [words, sound] = response.message().blocks() else { panic!("{response:?}") };
    assert_eq!(words.as_text(), Some("Hi"));
    assert_eq!(sound.content(), &BlockContent::Media(Media::from_bytes("audio/mpeg", &b"ID3"[..])));
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
fn last_event_that_parses_needs_no_blank_line() {
    for last in [STOP, DONE] {
        assert_eq!(text(&[HI, last.trim_end()].concat()), "Hi");
    }
    // An event that is cut in the middle is ignored.
    for last in [STOP, DONE] {
        let cut = &last[..last.len() - 4];
        assert_eq!(kind(&[HI, cut].concat()), ErrorKind::Truncated, "{cut}");
    }
    assert_eq!(kind(&[HI, ERROR.trim_end()].concat()), ErrorKind::Provider { status: Some(502) });
}

#[test]
fn events_without_content_are_skipped() {
    let noise = [
        ": comment\n\n",
        "data:\n\n",
        "data: null\n\n",
        "data: {\"type\":\"ping\"}\n\n",
        "data: []\n\n",
        "\r\n\n",
        "id: 7\n\n",
    ];
    assert_eq!(text(&[&noise.concat(), HI, &noise.concat(), STOP, &noise.concat(), DONE].concat()), "Hi");
}

#[test]
fn malformed_json_is_an_error_with_its_place() {
    let at = |position: u64| ErrorKind::Protocol { position: Some(position) };
    for broken in [
        "data: {\"choices\":\n\n",
        "data: {]}\n\n",
        "data: upstream failed\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}\n\n",
    ] {
        assert_eq!(kind(broken), at(0), "{broken}");
        assert_eq!(kind(&[HI, ": x\n", broken, STOP].concat()), at(HI.len() as u64 + 4), "{broken}");
    }
    // Blank lines before the stream count, too.
    assert_eq!(kind("\n\n data: x\n\ndata: {]}\n\n"), at(3));
    let error = read(b"data: {\"choices\":[{\"delta\":{\"content\":7x}}]}\n\n").0.expect_err("malformed");
    assert_eq!(
        error.to_string(),
        "the provider sent malformed JSON: line 1, column 34 of the JSON that begins at byte 0"
    );
}

#[test]
fn invalid_utf8_is_an_error_with_its_place() {
    let body = [HI.as_bytes(), b"data: {\"choices\":[{\"delta\":{\"content\":\"\xFF\"}}]}\n\n"].concat();
    let position = Some(HI.len() as u64 + 39);
    assert_eq!(read(&body).0.expect_err("invalid").kind(), ErrorKind::Protocol { position });
    assert_eq!(
        read(b"{\"a\":\"\xFF\"}").0.expect_err("invalid").kind(),
        ErrorKind::Protocol { position: Some(6) }
    );
}

#[test]
fn unexpected_field_does_not_fail_the_answer() {
    for odd in [
        r#""error":0"#,
        r#""error":{}"#,
        r#""usage":"n/a""#,
        r#""usage":[]"#,
        r#""usage":null,"usage":{"prompt_tokens":1}"#,
        r#""usage":{"prompt_tokens_details":"none","completion_tokens_details":[]}"#,
        r#""x_groq":"r""#,
        r#""x_groq":{"id":"r","error":null}"#,
        r#""id":"\ud83d","model":{}"#,
        r#""citations":{"a":1},"note":"\ud83d""#,
    ] {
        let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"Hi\"}}}}],{odd}}}\n\n");
        assert_eq!(text(&[&event, STOP].concat()), "Hi", "{odd}");
    }
    for odd in [
        r#""tool_calls":{}"#,
        r#""tool_calls":"""#,
        r#""tool_calls":[7,[],""]"#,
        r#""function_call":"""#,
        r#""function_call":[]"#,
        r#""reasoning_details":{"a":1}"#,
        r#""reasoning_details":"x""#,
        r#""content":"Hi""#,
    ] {
        for place in ["delta", "message"] {
            let event = format!(
                "data: {{\"choices\":[{{\"{place}\":{{\"content\":\"Hi\",{odd}}},\"finish_reason\":\"stop\"}}]}}\n\n"
            );
            let (response, _) = read(event.as_bytes());
            let response = response.expect(odd);
            assert_eq!((response.text().as_str(), response.tool_calls().count()), ("Hi", 0), "{odd}");
        }
    }
    for nothing in [
        "{\"choices\":{}}",
        "{\"choices\":\"\"}",
        "{\"choices\":[7,null,{\"delta\":[]}]}",
        "{\"note\":\"\\ud83d\"}",
    ] {
        assert_eq!(text(&format!("data: {nothing}\n\n{HI}data: {nothing}\n\n{STOP}")), "Hi", "{nothing}");
    }
}

#[test]
fn half_a_character_is_none() {
    let of = |text: &str| {
        self::text(
            &[&format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{text}}}}}]}}\n\n"), STOP].concat(),
        )
    };
    for (text, expected) in [
        (r#""a\ud83d\ude00""#, "a😀"),
        (r#""a\ud83d b""#, "a\u{FFFD} b"),
        (r#""\ud83d\ud83d\ude00 \ude00\n""#, "\u{FFFD}😀 \u{FFFD}\n"),
        (r#"[{"type":"text","text":"a\ud83d b"}]"#, "a\u{FFFD} b"),
        // An escaped backslash before letters is no escape of a character.
        (r#""a\\ud83d""#, "a\\ud83d"),
    ] {
        assert_eq!(of(text), expected, "{text}");
    }
}

#[test]
fn remarks_within_answer_are_no_error_unless_declared() {
    let lines = |events: &str| events.replace("data: ", "").replace("\n\n", "\n");
    let failed = ErrorKind::Provider { status: None };
    for remark in [
        r#"{"type":"status","message":"searching the web"}"#,
        r#"{"code":20000,"message":"ok"}"#,
        r#"{"type":"status","detail":"searching"}"#,
    ] {
        let body = format!("{HI}data: {remark}\n\n{STOP}");
        assert_eq!([text(&body), text(&lines(&body))], ["Hi", "Hi"], "{remark}");
        // In place of an answer the message is the error.
        assert_eq!(kind(&format!("data: {remark}\n\n")), failed, "{remark}");
        assert_eq!(kind(remark), failed, "{remark}");
    }
    for failure in [r#"{"code":"Throttling","message":"m"}"#, r#"{"success":false,"message":"m"}"#] {
        let body = format!("{HI}data: {failure}\n\n{STOP}{DONE}");
        assert_ne!(kind(&body), ErrorKind::Truncated, "{failure}");
        assert_ne!(kind(&lines(&body)), ErrorKind::Truncated, "{failure}");
    }
}

#[test]
fn an_answer_may_wait_for_its_turn() {
    let queued = "data: {\"status\":\"queued\",\"message\":\"two before you\"}\n\n";
    assert_eq!(text(&[queued, queued, HI, STOP, DONE].concat()), "Hi");
    // If nothing follows, the message is the error.
    let error = read([queued, ": x\n\n"].concat().as_bytes()).0.expect_err("no answer");
    let said = std::error::Error::source(&error).map(ToString::to_string);
    assert_eq!(said.as_deref(), Some("the provider said: two before you"));
    // It is dropped once anything else arrives.
    assert_eq!(kind(&[queued, HI].concat()), ErrorKind::Truncated);
    assert_eq!(kind(&[queued, ERROR].concat()), ErrorKind::Provider { status: Some(502) });
    assert_eq!(
        kind(&[queued, "data: {]}\n\n"].concat()),
        ErrorKind::Protocol { position: Some(queued.len() as u64) }
    );
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

/// Prepends a byte-order mark to a body.
fn marked(body: &str) -> Vec<u8> {
    [b"\xEF\xBB\xBF", body.as_bytes()].concat()
}

const WHOLE: &str = "{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}";

#[test]
fn one_byte_order_mark_is_skipped() {
    for body in [[HI, STOP].concat(), WHOLE.to_owned(), format!(" \n{WHOLE}")] {
        assert_eq!(read(&marked(&body)).0.expect("an answer").text(), "Hi", "{body}");
    }
    assert_eq!(read(&marked("<p>")).0.expect_err("a page").kind(), ErrorKind::Protocol { position: None });
    // A second mark is part of the text, and so is one after the very beginning.
    let twice = [b"\xEF\xBB\xBF".as_slice(), &marked(WHOLE)].concat();
    assert_eq!(read(&twice).0.expect_err("no answer").kind(), ErrorKind::Truncated);
    let later = [b"\n".as_slice(), &marked(WHOLE)].concat();
    assert_eq!(read(&later).0.expect_err("no answer").kind(), ErrorKind::Truncated);
    // A character that only begins like a mark is ordinary text: here an unknown field.
    let text = format!("\u{FEC0}: x\n\n{HI}{STOP}");
    assert_eq!(read(text.as_bytes()).0.expect("an answer").text(), "Hi");
    // Positions include the mark.
    let (outcome, _) = read(&marked("data: {]}\n\n"));
    assert_eq!(outcome.expect_err("malformed").kind(), ErrorKind::Protocol { position: Some(3) });
    let (outcome, _) = read(&marked("{]}"));
    assert_eq!(outcome.expect_err("malformed").kind(), ErrorKind::Protocol { position: Some(3) });
}

#[test]
fn positions_in_whole_body_start_at_first_byte() {
    let at = |position: u64| ErrorKind::Protocol { position: Some(position) };
    assert_eq!(kind("\n\n  {\"choices\":]}"), at(4));
    assert_eq!(kind("\n{\"choices\":[]}\n \n{]}"), at(18));
    assert_eq!(read(b"\n\n{\"a\":\"\xFF\"}").0.expect_err("invalid").kind(), at(8));
    let error = read(b" \n{\"choices\":[]}\n{\"choices\":[7x]}").0.expect_err("malformed");
    assert_eq!(
        error.to_string(),
        "the provider sent malformed JSON: line 1, column 14 of the JSON that begins at byte 17"
    );
}

#[test]
fn a_whole_body_cut_anywhere_is_truncated() {
    let body = "{\"choices\":[{\"message\":{\"content\":\"Grüße 😀\"},\"finish_reason\":\"stop\"}]}";
    for body in [body.as_bytes(), &marked(body)] {
        for end in 0..body.len() {
            let (outcome, _) = read(&body[..end]);
            assert_eq!(outcome.expect_err("cut").kind(), ErrorKind::Truncated, "cut at {end}");
        }
        assert!(read(body).0.is_ok());
    }
}

#[test]
fn bytes_after_a_whole_answer_are_ignored() {
    for rest in [" trailing", "}", "\n{\"error\":\"late\"}", "\n{broken", WHOLE] {
        assert_eq!(text(&format!("{WHOLE}{rest}")), "Hi", "{rest}");
    }
    for rest in [b"\xC3".as_slice(), b"\xFF"] {
        let (outcome, _) = read(&[WHOLE.as_bytes(), rest].concat());
        assert_eq!(outcome.expect("an answer").text(), "Hi");
    }
}

#[test]
fn usage_may_follow_a_whole_answer() {
    let usage = "\n{\"choices\":[],\"usage\":{\"prompt_tokens\":3}}";
    for (rest, told) in [
        (usage.to_owned(), true),
        (format!("\nnull\n{{}}\n[]\n{{\"error\":\"late\"}}\n{WHOLE}{usage}\n{{broken"), true),
        (format!(" \n{usage}\ntrailing"), true),
        // After anything but JSON, nothing is read any more.
        (format!("trailing{usage}"), false),
    ] {
        let (outcome, _) = read(format!("{WHOLE}{rest}").as_bytes());
        let response = outcome.expect(&rest);
        assert_eq!(response.text(), "Hi", "{rest}");
        assert_eq!(response.usage().and_then(|usage| usage.input_tokens), told.then_some(3), "{rest}");
    }
    let (outcome, _) = read(&[WHOLE.as_bytes(), usage.as_bytes(), b"\xFF"].concat());
    assert!(outcome.expect("an answer").usage().is_some());
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
fn deltas_beside_an_error_come_first() {
    let mut decoder = decoder();
    decoder.push("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}],\"error\":{\"message\":\"m\"}}\n\ndata: [DONE]\n\n".into());
    assert_eq!(decoder.next().and_then(Result::ok), Some(Delta::text("Hi")));
    assert!(decoder.next().is_some_and(|delta| delta.is_err()));
    assert!(decoder.next().is_none());
    decoder.push(HI.into());
    decoder.finish();
    assert!(decoder.next().is_none(), "after an error nothing follows");
}

#[test]
fn a_whole_answer_gives_the_same_deltas() {
    let body = "\n {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hi\",\"reasoning_content\":\"so\",
        \"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}],
        \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n";
    let (response, _) = read(body.as_bytes());
    let response = response.expect("an answer");
    assert_eq!(
        (response.text().as_str(), response.response_id(), response.model()),
        ("Hi", Some("r"), Some("m"))
    );
    assert_eq!(response.tool_calls().count(), 1);
    assert!(response.tool_calls().all(|(_, call)| call.complete));
    assert_eq!(response.finish().reason, FinishReason::ToolCalls);
    assert_eq!(response.usage().and_then(|usage| usage.output_tokens), Some(2));
    // A whole answer is its own end marker.
    assert!(
        read(b"{\"choices\":[{\"message\":{\"content\":\"Hi\"}}]}")
            .0
            .is_ok_and(|response| response.finish().inferred)
    );
}

#[test]
fn lines_of_json_are_a_stream() {
    let lines = |events: &[&str]| {
        events
            .iter()
            .map(|event| event.trim_start_matches("data: ").trim_end().to_owned() + "\n")
            .collect::<String>()
    };
    assert_eq!(text(&lines(&[HI, STOP])), "Hi");
    assert_eq!(kind(&lines(&[HI])), ErrorKind::Truncated);
    assert_eq!(kind(&lines(&[HI, ERROR])), ErrorKind::Provider { status: Some(502) });
}

#[test]
fn other_json_and_cut_json_are_distinguished() {
    let protocol = ErrorKind::Protocol { position: Some(0) };
    assert_eq!(kind("{\"data\":{\"choices\":[]},\"success\":true}"), protocol);
    assert_eq!(kind("{}"), protocol);
    assert_eq!(kind("[1]"), protocol);
    assert_eq!(kind("{\"choices\":[{\"message\":{\"content\":\"Hi\"}}"), ErrorKind::Truncated);
    assert_eq!(kind("{\"choices\":[}"), protocol);
}

#[test]
fn pages_and_other_types_are_no_answer() {
    let of = |body: &str, content_type: &str| {
        let (outcome, _) = read_with(decoder().with_content_type(content_type), &[body.as_bytes()]);
        outcome.expect_err(body)
    };
    let protocol = ErrorKind::Protocol { position: None };
    let page = of("\n<!DOCTYPE html><title>Sign in</title>", "text/html; charset=utf-8");
    assert_eq!(page.kind(), protocol);
    let said = std::error::Error::source(&page).map(ToString::to_string);
    assert_eq!(said.as_deref(), Some("the provider said: <!DOCTYPE html><title>Sign in</title>"));
    assert_eq!(of("<p>", "").kind(), protocol);
    let (latin1, _) = read_with(decoder(), &[b"<title>Connexion \xE9chou\xE9e</title>"]);
    let latin1 = latin1.expect_err("a page");
    assert!(latin1.kind() == protocol && latin1.to_string().contains("web page"), "{latin1}");
    assert_eq!(of("Bad gateway", "text/plain").kind(), protocol);
    assert_eq!(of("", "application/json").kind(), protocol);
    assert!(of("", "Application/JSON").to_string().contains("application/json"));
    assert_eq!(of("", "text/event-stream; charset=utf-8").kind(), ErrorKind::Truncated);
    assert_eq!(of(": only comments\n\n", "text/plain").kind(), ErrorKind::Truncated);
    // The body decides, not its content type.
    for content_type in ["application/json", "text/html", "text/event-stream", ""] {
        for body in [[HI, STOP].concat(), "{\"choices\":[{\"message\":{\"content\":\"Hi\"}}]}".to_owned()] {
            let (outcome, _) = read_with(decoder().with_content_type(content_type), &[body.as_bytes()]);
            assert_eq!(outcome.expect(content_type).text(), "Hi");
        }
    }
}

#[test]
fn law_r1_bodies_are_bounded() {
    let limits = SseLimits { line: 64, event: 64 };
    let bounded = || decoder_with(ThinkTags::AsText, limits);
    let page = ErrorKind::Protocol { position: None };
    for (beginning, kind) in
        [("data: ", ErrorKind::TooLarge), ("{\"a\":\"", ErrorKind::TooLarge), ("<", page)]
    {
        let body = [beginning, &"x".repeat(100)].concat();
        for size in [1, 7, 200] {
            let pieces: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
            let (outcome, _) = read_with(bounded(), &pieces);
            let error = outcome.expect_err(beginning);
            assert_eq!(error.kind(), kind, "{beginning} in pieces of {size}");
            let shown = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            assert!(shown.len() <= "the provider said: ".len() + limits.event, "{shown}");
        }
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
