//! Tests of `answer`.

use advisor_core::{AggregatorSettings, BlockKind, ChatResponse, Error, ErrorKind, Result};
use advisor_test_support::decoding::read_answer;
use proptest::collection::vec;
use proptest::prelude::*;
use provider_http::answer::{AnswerDecoder, End};
use provider_http::redaction::Redaction;
use provider_http::sse::SseLimits;

use super::*;

type Decoder = AnswerDecoder<OllamaChat>;

fn decoder() -> Decoder {
    AnswerDecoder::new(OllamaChat::default(), SseLimits::default(), Redaction::default())
}

/// Reads a body whole, and checks that it gives the same byte by byte.
fn read(body: &str) -> (Result<ChatResponse>, End) {
    let read = |pieces: &[&[u8]]| read_answer(decoder(), AggregatorSettings::default(), pieces);
    let (whole, bytes) = (read(&[body.as_bytes()]), body.as_bytes().chunks(1).collect::<Vec<_>>());
    whole.assert_same(&read(&bytes), body);
    (whole.response, whole.end)
}

fn answer(body: &str) -> ChatResponse {
    let (response, end) = read(body);
    // Without a line end, the last line is read at the end of the body.
    assert!(end == End::Done || !body.ends_with('\n'), "{body}");
    response.expect(body)
}

fn failure(body: &str) -> Error {
    read(body).0.expect_err(body)
}

/// Returns the blocks of an answer as their kind and content.
fn blocks(response: &ChatResponse) -> Vec<(BlockKind, String)> {
    let content = |block: &advisor_core::Block| match block.as_tool_call() {
        Some(call) => format!("{}{}", call.name, call.arguments),
        None => block.content().text_of(block.kind()).unwrap_or_default().to_owned(),
    };
    response.blocks().map(|(_, block)| (block.kind(), content(block))).collect()
}

fn said(kind: BlockKind, content: &str) -> (BlockKind, String) {
    (kind, content.to_owned())
}

/// Returns a line with this message.
fn line(message: &str) -> String {
    format!(
        "{{\"model\":\"m\",\"created_at\":\"2026-01-02T03:04:05.678Z\",\"message\":{{\"role\":\"assistant\",{message}}},\"done\":false}}\n"
    )
}

fn text(text: &str) -> String {
    line(&format!("\"content\":\"{text}\""))
}

const STOP: &str = "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done_reason\":\"stop\",\"done\":true,\"total_duration\":5,\"prompt_eval_count\":7,\"prompt_eval_duration\":2,\"eval_count\":3,\"eval_duration\":3}\n";

#[test]
fn text_and_thinking_become_blocks_in_order() {
    let thinking = |text: &str| line(&format!("\"content\":\"\",\"thinking\":\"{text}\""));
    let body = [thinking("Let "), thinking("me."), text("Na"), text("ïve 😀\\n"), STOP.to_owned()].concat();
    let response = answer(&body);
    assert_eq!(
        blocks(&response),
        [said(BlockKind::Reasoning, "Let me."), said(BlockKind::Text, "Naïve 😀\n")]
    );
    assert_eq!(response.usage, Some(Usage::new(7, 3)));
    assert_eq!((response.model.as_deref(), response.response_id.as_deref()), (Some("m"), None));
    assert_eq!(response.finish, Finish::written(FinishReason::Stop, "stop"));
}

#[test]
fn q50_one_line_holds_thinking_text_and_call() {
    let call = r#""tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}],"content":"b","thinking":"a""#;
    let response = answer(&[line(call), text("c"), STOP.to_owned()].concat());
    let expected = [
        said(BlockKind::Reasoning, "a"),
        said(BlockKind::Text, "b"),
        said(BlockKind::ToolCall, "f{\"a\":1}"),
        said(BlockKind::Text, "c"),
    ];
    assert_eq!(blocks(&response), expected);
}

#[test]
fn law_t6_each_entry_is_a_separate_call() {
    let entry = |index: &str, name: &str, value: u32| {
        format!("{{\"function\":{{{index}\"name\":\"{name}\",\"arguments\":{{\"v\":{value}}}}}}}")
    };
    // No index at all, 0 with every call, numbers that go on, and numbers that begin anew.
    for index in [["", "", ""], ["0", "0", "0"], ["0", "1", "2"], ["", "1", "1"], ["1", "0", "1"]] {
        let index =
            index.map(|index| if index.is_empty() { String::new() } else { format!("\"index\":{index},") });
        let [first, second, third] =
            [entry(&index[0], "f", 1), entry(&index[1], "f", 2), entry(&index[2], "g", 3)];
        let one_line = line(&format!("\"content\":\"\",\"tool_calls\":[{first},{second},{third}]"));
        let lines =
            [&first, &second, &third].map(|call| line(&format!("\"content\":\"\",\"tool_calls\":[{call}]")));
        for calls in [one_line, lines.concat()] {
            let response = answer(&[&calls, STOP].concat());
            let calls: Vec<_> = response.tool_calls().map(|(_, call)| call).collect();
            let expected = [("f", "{\"v\":1}"), ("f", "{\"v\":2}"), ("g", "{\"v\":3}")];
            assert_eq!(calls.len(), 3, "{response:?}");
            for (call, (name, arguments)) in calls.iter().zip(expected) {
                assert_eq!((&*call.name, &*call.arguments, call.complete), (name, arguments, true));
            }
            let ids: std::collections::BTreeSet<_> = calls.iter().map(|call| &call.id).collect();
            assert_eq!(ids.len(), 3, "ids are made: {ids:?}");
        }
    }
}

#[test]
fn calls_in_every_form_keep_their_arguments() {
    let call =
        |function: &str| line(&format!("\"content\":\"\",\"tool_calls\":[{{\"function\":{function}}}]"));
    let cases = [
        (r#"{"name":"f","arguments":{"b":1, "a":[2.50]}}"#, "f", r#"{"b":1, "a":[2.50]}"#),
        // Q20: a text in place of the object.
        (r#"{"name":"f","arguments":"{\"a\":\"ü\"}"}"#, "f", r#"{"a":"ü"}"#),
        // Q21: nothing.
        (r#"{"name":"f","arguments":{}}"#, "f", "{}"),
        (r#"{"name":"f","arguments":null}"#, "f", ""),
        (r#"{"name":"f","arguments":""}"#, "f", ""),
        (r#"{"name":"f"}"#, "f", ""),
        // Bad arguments stay as they are.
        (r#"{"name":"f","arguments":"{\"a\":"}"#, "f", "{\"a\":"),
        (r#"{"name":"f","arguments":[1]}"#, "f", "[1]"),
        (
            r#"{"name":"f","arguments":{"n":12345678901234567890123}}"#,
            "f",
            r#"{"n":12345678901234567890123}"#,
        ),
        // Q18: a call without a name is not lost.
        (r#"{"arguments":{"a":1}}"#, advisor_core::ToolCall::UNNAMED, r#"{"a":1}"#),
    ];
    for (function, name, arguments) in cases {
        let response = answer(&[&call(function), STOP].concat());
        let (_, call) = response.tool_calls().next().expect(function);
        assert_eq!((&*call.name, &*call.arguments), (name, arguments), "{function}");
        // Q28: Ollama says `stop`, also with calls.
        assert_eq!(response.finish.reason, FinishReason::Stop);
    }
}

#[test]
fn id_of_newer_versions_is_kept() {
    let entry = r#"{"id":"call_a1","function":{"index":0,"name":"f","arguments":{}}}"#;
    let response =
        answer(&[&line(&format!("\"content\":\"\",\"tool_calls\":[{entry},{entry}]")), STOP].concat());
    let ids: Vec<_> = response.tool_calls().map(|(_, call)| call.id.to_string()).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids[0] == "call_a1" && ids[1] != "call_a1", "{ids:?}");
}

#[test]
fn absent_and_empty_members_open_no_block() {
    for message in [
        r#""content":"""#,
        r#""content":null,"tool_calls":null,"thinking":null"#,
        r#""content":"","tool_calls":[],"thinking":"""#,
        r#""content":[],"tool_calls":"none","thinking":{}"#,
        r#""tool_calls":[null,"f",7]"#,
    ] {
        assert_eq!(blocks(&answer(&[&line(message), STOP].concat())), [], "{message}");
        let response = answer(&[&line(message), &text("Hi"), STOP].concat());
        assert_eq!(blocks(&response), [said(BlockKind::Text, "Hi")], "{message}");
    }
}

#[test]
fn every_end_has_its_reason() {
    let end = |reason: &str| {
        format!(
            "{{\"model\":\"m\",\"message\":{{\"role\":\"assistant\",\"content\":\"\"}},{reason}\"done\":true}}\n"
        )
    };
    let cases = [
        ("stop", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("tool_calls", FinishReason::ToolCalls),
        ("load", FinishReason::Empty),
        ("unload", FinishReason::Empty),
        ("thermal", FinishReason::Other("thermal".into())),
    ];
    for (written, reason) in cases {
        let response = answer(&[text("Hi"), end(&format!("\"done_reason\":\"{written}\","))].concat());
        assert_eq!(response.finish, Finish::written(reason, written));
    }
    // A call runs only under a word that is known to leave it whole.
    let call = "{\"model\":\"m\",\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}]},\"done\":false}\n";
    for (written, runs) in [("stop", true), ("tool_calls", true), ("length", false), ("thermal", false)] {
        let response = answer(&[call.to_owned(), end(&format!("\"done_reason\":\"{written}\","))].concat());
        assert_eq!(response.tool_calls().all(|(_, call)| call.complete), runs, "{written}");
    }
    // A model that was only loaded says nothing, and an empty answer is marked as such.
    for written in ["load", "unload", "stop"] {
        let response = answer(&end(&format!("\"done_reason\":\"{written}\",")));
        assert_eq!(response.finish, Finish::written(FinishReason::Empty, written));
    }
    for silent in ["", "\"done_reason\":\"\",", "\"done_reason\":null,"] {
        let response = answer(&[text("Hi"), end(silent)].concat());
        assert_eq!(response.finish, Finish::inferred(FinishReason::Stop), "{silent}");
    }
}

#[test]
fn whole_answer_gives_the_same() {
    let streamed = answer(&[text("Hi"), STOP.to_owned()].concat());
    let whole = STOP.replace("\"content\":\"\"", "\"content\":\"Hi\"");
    assert_eq!(answer(&whole), streamed);
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&whole).unwrap()).unwrap();
    assert_eq!(answer(&pretty), streamed);
}

#[test]
fn line_ends_and_blank_lines_do_not_matter() {
    let body = [text("a"), text("b"), STOP.to_owned()].concat();
    let expected = answer(&body);
    for other in [
        body.replace('\n', "\r\n"),
        body.replace('\n', "\n\n"),
        body.replace('\n', ""),
        format!("\u{feff}\n{body}"),
    ] {
        assert_eq!(answer(&other), expected, "{other}");
    }
}

#[test]
fn q48_error_line_ends_the_answer() {
    let error = "{\"error\":\"model runner has unexpectedly stopped\"}\n";
    let call = line(r#""content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]"#);
    for body in
        [[error, STOP].concat(), [&text("Hi"), error].concat(), [&text("Hi"), &call, error, STOP].concat()]
    {
        let error = failure(&body);
        assert_eq!(error.kind(), ErrorKind::Provider { status: None }, "{body}");
        let source = std::error::Error::source(&error).expect("the server's words").to_string();
        assert!(source.contains("unexpectedly stopped"), "{source}");
        assert!(error.partial().is_none_or(|partial| partial.tool_calls().all(|(_, call)| !call.complete)));
    }
    // Its content comes before it, and it ends an answer that claims to be complete.
    let both =
        r#"{"message":{"content":"Hi"},"done":true,"done_reason":"stop","error":{"message":"m","code":503}}"#;
    let error = failure(both);
    assert_eq!(error.kind(), ErrorKind::Provider { status: Some(503) });
    assert_eq!(error.partial().expect("a partial answer").text(), "Hi");
    assert_eq!(
        answer(&STOP.replace("\"done\"", "\"error\":null,\"done\"")).finish.reason,
        FinishReason::Empty
    );
}

#[test]
fn q48_error_in_plain_words_ends_the_answer() {
    let hi = text("Hi");
    for words in ["Internal Server Error", "timeout: [1] is \"full\""] {
        for end in ["", "\n", "\r\n", "\n{}\n"] {
            let error = failure(&[&hi, words, end].concat());
            assert_eq!(error.kind(), ErrorKind::Provider { status: None }, "{words}");
            assert_eq!(error.partial().expect("a partial answer").text(), "Hi");
            let source = std::error::Error::source(&error).expect("the server's words").to_string();
            assert!(source.ends_with(words), "{source}");
        }
    }
}

/// Words that begin like a field of server-sent events are words nevertheless.
#[test]
fn q48_plain_words_may_be_the_whole_answer() {
    for words in
        ["down", "data", "database is locked", "e", "error: no GPU", "event loop closed", "id", "retry"]
    {
        for end in ["", "\n"] {
            let error = failure(&[words, end].concat());
            assert_eq!(error.kind(), ErrorKind::Provider { status: None }, "{words}");
            let source = std::error::Error::source(&error).expect("the server's words").to_string();
            assert!(source.ends_with(words), "{source}");
        }
    }
    let event = format!("data: {}\n", text("Hi"));
    assert_eq!(answer(&[&event, "data: ", STOP, "\n"].concat()).text(), "Hi", "a gateway's events");
}

#[test]
fn malformed_json_is_a_protocol_error() {
    let hi = text("Hi");
    let error = failure(&[&hi, "{\"message\":}\n"].concat());
    assert_eq!(error.kind(), ErrorKind::Protocol { position: Some(hi.len() as u64) });
    assert_eq!(error.partial().expect("a partial answer").text(), "Hi");
    assert_eq!(failure("<html>").kind(), ErrorKind::Protocol { position: None });
}

#[test]
fn valid_json_that_parsers_refuse_is_repaired() {
    let odd = [
        line(r#""content":"a\ud83d","content":"b\ud83d!""#),
        line(r#""content":"c","tool_calls":[{"function":{"name":"f","arguments":{"n":1e999}}}]"#),
        format!(
            "{{\"message\":{{\"content\":\"d\"}},\"done\":false,\"more\":{}1{}}}\n",
            "[".repeat(100),
            "]".repeat(100)
        ),
    ];
    let response = answer(&[&odd.concat(), STOP].concat());
    assert_eq!(response.text(), "b\u{fffd}!cd");
    let (_, call) = response.tool_calls().next().expect("a call");
    assert_eq!((call.arguments.as_str(), call.parsed_arguments().is_err()), ("{\"n\":1e999}", true));
}

#[test]
fn messages_and_unknown_lines_are_distinguished() {
    let status = ErrorKind::Provider { status: None };
    assert_eq!(failure("{\"message\":\"no such route\"}").kind(), status);
    assert_eq!(failure("[{\"error\":\"m\"}]").kind(), status);
    let noise =
        "{\"status\":\"pulling manifest\"}\n{\"version\":2}\nnull\n[]\n{\"model\":\"m\",\"done\":false}\n";
    let response = answer(&[noise, &text("Hi"), noise, STOP].concat());
    assert_eq!(blocks(&response), [said(BlockKind::Text, "Hi")]);
}

#[test]
fn only_usage_counts_after_the_end() {
    let late = "{\"model\":\"m\",\"message\":{\"content\":\"late\"},\"done\":true,\"eval_count\":9}\n{\"error\":\"late\"}\nlate\n";
    let response = answer(&[&text("Hi"), STOP, late].concat());
    assert_eq!(blocks(&response), [said(BlockKind::Text, "Hi")]);
    assert_eq!(response.usage, Some(Usage::new(7, 9)));
}

#[test]
fn impossible_counts_are_absent() {
    for count in ["-1", "1.5", "\"many\"", "9007199254740992", "1e400", "null", "{}"] {
        let body = STOP.replace("\"prompt_eval_count\":7", &format!("\"prompt_eval_count\":{count}"));
        let usage = answer(&body).usage.expect("the other count");
        assert_eq!((usage.input_tokens, usage.output_tokens), (None, Some(3)), "{count}");
    }
}

#[test]
fn images_of_an_answer_are_media() {
    let response =
        answer(&[&line(r#""content":"Look:","images":["iVBORw0KGgo=","?","AQID"]"#), STOP].concat());
    let media = response.blocks().filter_map(|(_, block)| match block.content() {
        advisor_core::BlockContent::Media(media) => Some(media.mime.to_string()),
        _ => None,
    });
    assert_eq!(media.collect::<Vec<_>>(), ["image/png", "application/octet-stream"]);
    assert_eq!(response.text(), "Look:");
}

#[test]
fn type_of_an_image_is_known_by_its_first_bytes() {
    for (bytes, mime) in [
        (&b"\x89PNG\r\n\x1a\n"[..], "image/png"),
        (b"\xFF\xD8\xFF\xE0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", "application/octet-stream"),
        (b"BM\x1e\0", "image/bmp"),
        (b"II*\0", "image/tiff"),
        (b"MM\0*", "image/tiff"),
        (b"\0\0\0\x20ftypavif", "image/avif"),
        (b"\0\0\0\x20ftypheic", "image/heic"),
        (b"", "application/octet-stream"),
    ] {
        assert_eq!(mime_of(bytes), mime, "{bytes:?}");
    }
}

#[test]
fn deeply_nested_arguments_cause_no_stack_overflow() {
    for depth in [3, 100, 100_000] {
        let arguments = ["[".repeat(depth), "]".repeat(depth)].concat();
        let call = format!(r#"{{"function":{{"name":"f","arguments":{{"a":{arguments}}}}}}}"#);
        let body = [line(&format!(r#""tool_calls":[{call}]"#)), STOP.to_owned()].concat();
        let whole = read_answer(decoder(), AggregatorSettings::default(), &[body.as_bytes()]);
        assert!(whole.response.is_ok(), "{depth}");
    }
}

proptest! {
    /// A line that is like the ones before is not read. With a number of its own it is, and means the same.
    #[test]
    fn law_s5_repeated_lines_mean_the_same(lines in vec((0..8_usize, 0..7_usize, 0..7_usize), 1..40)) {
        const TEXTS: [&str; 7] = ["a", "bc", " ", "content", r"\u0061", r"\n", "é"];
        let line = |(kind, text, other): &(usize, usize, usize), at: usize| {
            let (text, other) = (TEXTS[*text], TEXTS[*other]);
            let message = match kind {
                0..5 => format!(r#""content":"{text}""#),
                5 => format!(r#""thinking":"{text}""#),
                6 => format!(r#""thinking":"{text}","content":"{text}""#),
                _ => r#""tool_calls":[{"function":{"name":"f","arguments":{}}}]"#.to_owned(),
            };
            format!(r#"{{"message":{{{message}}},"p":"{other}","done":false,"at":{at}}}"#) + "\n"
        };
        let [repeated, numbered] = [false, true].map(|is_numbered| {
            let lines = lines.iter().enumerate().map(|(at, piece)| line(piece, if is_numbered { at } else { 0 }));
            let body = lines.collect::<String>() + "{\"done\":true,\"done_reason\":\"stop\"}\n";
            read_answer(decoder(), AggregatorSettings::default(), &[body.as_bytes()])
        });
        prop_assert_eq!(&repeated.chunks, &numbered.chunks);
        numbered.assert_same(&repeated, "repeated");
    }
}
