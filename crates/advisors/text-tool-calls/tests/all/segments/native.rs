//! Segments of calls by the interface: streamed arguments, decoded files, ids, and calls that fail.

use advisor_core::{Delta, Media, ProviderData, ToolCallDelta};
use serde_json::json;
use text_tool_calls::ToolCallFormat;
use text_tool_calls::segments::SegmentHandler;

use crate::segments::common::{answer, arguments, call, chunks, invocations, run, texts, tools};

fn native() -> SegmentHandler {
    SegmentHandler::new(ToolCallFormat::Api, &tools()).with_id_prefix("t:")
}

#[test]
fn text_is_one_segment() {
    let mut handler = native();
    let events = run(&mut handler, &texts(["Hel", "", "lo"]));
    assert_eq!(events, ["t:text_1 start \"text\"", "t:text_1: Hello", "t:text_1 end"]);
    assert_eq!(handler.events().len(), 4, "a content for each piece that has characters");
}

#[test]
fn call_streams_its_arguments_and_ends_with_them_parsed() {
    let mut handler = native();
    let events = run(
        &mut handler,
        &chunks([call(0, "c1", "weather"), arguments(0, "{\"city\":"), arguments(0, "\"Oslo\"}")]),
    );
    assert_eq!(
        events,
        [
            "c1 start \"tool_call\" {\"tool_name\":\"weather\"}",
            "c1: {\"city\":\"Oslo\"}",
            "c1 end {\"arguments\":{\"city\":\"Oslo\"},\"tool_name\":\"weather\"}",
        ]
    );
    assert_eq!(invocations(&handler), ["c1 weather {\"city\":\"Oslo\"}"]);
}

#[test]
fn one_handler_reads_all_rounds_of_a_turn() {
    let mut handler = native();
    let first = answer(1, [Delta::text("a"), call(0, "c1", "time")]);
    let second = answer(2, [Delta::text("b"), call(0, "c1", "time")]);
    let events = run(&mut handler, &[first, second].concat());
    let ends: Vec<_> = events.iter().filter_map(|event| event.split_once(" end")).map(|(id, _)| id).collect();
    assert_eq!(ends, ["t:text_1", "c1", "t:text_2", "t:call_1"], "ids are unique in the turn");
    assert_eq!(invocations(&handler), ["c1 time {}", "t:call_1 time {}"]);
}

#[test]
fn text_around_calls_keeps_its_place() {
    let mut handler = native();
    let events = run(
        &mut handler,
        &chunks([
            Delta::text("a"),
            call(0, "c1", "time"),
            call(1, "run_bash:1", "run_bash"),
            arguments(1, "{\"command\": \"ls\"}"),
            Delta::text("b"),
            Delta::reasoning("c"),
        ]),
    );
    let starts: Vec<_> = events.iter().filter(|event| event.contains(" start ")).collect();
    assert_eq!(
        starts,
        [
            "t:text_1 start \"text\"",
            "c1 start \"tool_call\" {\"tool_name\":\"time\"}",
            "run_bash:1 start \"run_bash\" {\"tool_name\":\"run_bash\"}",
            "t:text_2 start \"text\"",
            "t:text_3 start \"reasoning\"",
        ]
    );
    assert_eq!(invocations(&handler), ["c1 time {}", "run_bash:1 run_bash {\"command\":\"ls\"}"]);
}

#[test]
fn content_of_a_file_is_decoded_while_it_is_generated() {
    let json = "{\"content\": \"a\\n\\\"\\u00e9\\ud83d\\ude00\", \"path\": \"x.txt\"}";
    let path_first = "{\"path\": \"x.txt\", \"content\": \"a\\n\\\"\\u00e9\\ud83d\\ude00\"}";
    for json in [json, path_first] {
        let letters: Vec<String> = json.chars().map(String::from).collect();
        let deltas = letters.iter().map(|letter| arguments(0, letter));
        let mut handler = native();
        let events = run(&mut handler, &chunks([call(0, "c1", "write_file")].into_iter().chain(deltas)));
        assert_eq!(
            events[..2],
            ["c1 start \"write_file\" {\"path\":\"x.txt\",\"tool_name\":\"write_file\"}", "c1: a\n\"é😀",]
        );
        assert!(events[2].starts_with("c1 end {\"arguments\":{"), "{events:?}");
        assert_eq!(handler.invocations().count(), 1);
    }
}

#[test]
fn broken_or_missing_arguments_are_no_invocation() {
    for (tool, json, expected) in [
        (
            "weather",
            "{\"city\": ",
            "c1 failed: the arguments are no JSON object: EOF while parsing a value at line 1 column 9",
        ),
        (
            "weather",
            "[1]",
            "c1 failed: the arguments are no JSON object: invalid type: sequence, expected a map at line 1 column 0",
        ),
        ("write_file", "{\"content\": \"a\"}", "c1 failed: the argument `path` is missing"),
        ("write_file", "{\"path\": \"\", \"content\": \"a\"}", "c1 failed: the argument `path` is missing"),
        ("run_bash", "{}", "c1 failed: the argument `command` is missing"),
    ] {
        let mut handler = native();
        let events = run(&mut handler, &chunks([call(0, "c1", tool), arguments(0, json)]));
        assert_eq!(events.last().unwrap(), expected);
        assert!(events[0].starts_with("c1 start"), "{events:?}");
        assert_eq!(handler.invocations().count(), 0);
    }
}

#[test]
fn media_is_a_segment() {
    let media = Media::from_url("image/png", "https://example.com/a.png");
    let events = run(&mut native(), &chunks([Delta::media(media)]));
    assert!(
        events[0].starts_with("t:text_1 start \"media\" {\"media\":{\"mime\":\"image/png\""),
        "{events:?}"
    );
    assert_eq!(events.len(), 2);
}

#[test]
fn call_that_never_gets_a_name_fails() {
    let mut handler = native();
    let events = run(&mut handler, &chunks([arguments(0, "{\"city\":\"a\"}")]));
    assert!(events.last().unwrap().ends_with("failed: the call has no name"), "{events:?}");
    assert_eq!(handler.invocations().count(), 0);
}

#[test]
fn data_of_the_provider_stays_with_its_call() {
    let signature = ProviderData::new("some-provider", json!({"signature": "x"}));
    let mut signed = ToolCallDelta::start(0, "c1", "time");
    signed.provider_data = Some(signature.clone());
    let mut handler = native();
    run(&mut handler, &chunks([Delta::tool_call(signed), call(1, "c2", "time")]));
    let data: Vec<_> = handler.invocations().map(|found| found.provider_data.clone()).collect();
    assert_eq!(data, [vec![signature], vec![]]);
}
