//! Segments of calls in the text: every format, whole and by letters, gives the same invocations.

use advisor_core::{Delta, DeltaKind};
use text_tool_calls::segments::SegmentHandler;
use text_tool_calls::{TextFormat, ToolCallFormat};

use crate::segments::common::{arguments, call, chunks, invocations, run, short, texts, tools};

fn parsing(format: TextFormat) -> SegmentHandler {
    SegmentHandler::new(ToolCallFormat::Text(format), &tools()).with_id_prefix("t:")
}

#[test]
fn content_of_a_call_is_what_the_model_wrote() {
    let body = "<arguments><arg name=\"city\">A &amp; B</arg></arguments>";
    let text = format!("a <tool name=\"weather\">{body}</tool> b");
    let letters: Vec<String> = text.chars().map(String::from).collect();
    for pieces in [vec![text.as_str()], letters.iter().map(String::as_str).collect()] {
        let mut handler = parsing(TextFormat::Xml);
        let events = run(&mut handler, &texts(pieces));
        assert_eq!(
            events,
            [
                "t:text_1 start \"text\"",
                "t:text_1: a ",
                "t:text_1 end",
                "t:call_1 start \"tool_call\" {\"tool_name\":\"weather\"}",
                &format!("t:call_1: {body}"),
                "t:call_1 end {\"arguments\":{\"city\":\"A & B\"},\"tool_name\":\"weather\"}",
                "t:text_2 start \"text\"",
                "t:text_2:  b",
                "t:text_2 end",
            ]
        );
        assert_eq!(invocations(&handler), ["t:call_1 weather {\"city\":\"A & B\"}"]);
    }
}

#[test]
fn each_format_gives_the_same_invocation() {
    for (format, text) in [
        (TextFormat::Xml, "<write_file path=\"a\">x\n</write_file>"),
        (
            TextFormat::Json,
            "{\"tool\": {\"function\": \"write_file\", \"parameters\": {\"path\": \"a\", \"content\": \"x\\n\"}}}",
        ),
        (TextFormat::Sentinel, "[[SEG_START {\"type\": \"write_file\", \"path\": \"a\"}]]\nx\n[[SEG_END]]"),
    ] {
        let letters: Vec<String> = text.chars().map(String::from).collect();
        for pieces in [vec![text], letters.iter().map(String::as_str).collect()] {
            let mut handler = parsing(format);
            let events = run(&mut handler, &texts(pieces));
            assert_eq!(
                events[0],
                "t:call_1 start \"write_file\" {\"path\":\"a\",\"tool_name\":\"write_file\"}"
            );
            let content: String =
                events.iter().filter_map(|event| event.strip_prefix("t:call_1: ")).collect();
            assert_eq!(content, "x\n");
            assert_eq!(invocations(&handler), ["t:call_1 write_file {\"content\":\"x\\n\",\"path\":\"a\"}"]);
        }
    }
}

/// The path is an element, before the content or behind it.
#[test]
fn start_of_a_file_waits_for_its_path_element() {
    let start = "t:call_1 start \"write_file\" {\"path\":\"src/a\",\"tool_name\":\"write_file\"}";
    let end =
        "t:call_1 end {\"arguments\":{\"content\":\"xy\",\"path\":\"src/a\"},\"tool_name\":\"write_file\"}";
    let path_first = [
        ("<tool name=\"write_file\"><arg name=\"path\">src", vec![]),
        ("/a", vec![]),
        ("</arg><arg name=\"content\">x", vec![start, "t:call_1: x"]),
        ("y</arg>", vec!["t:call_1: y"]),
        ("</tool>", vec![end]),
    ];
    let content_first = [
        ("<tool name=\"write_file\"><arg name=\"content\">x", vec![]),
        ("y</arg><arg name=\"path\">src", vec![]),
        ("/a", vec![]),
        ("</arg>", vec![start, "t:call_1: xy"]),
        ("</tool>", vec![end]),
    ];
    for steps in [path_first, content_first] {
        let answer = texts(steps.iter().map(|(piece, _)| *piece));
        let mut handler = parsing(TextFormat::Xml);
        handler.feed(&answer[0]).unwrap();
        for (chunk, (piece, expected)) in answer[1..].iter().zip(&steps) {
            assert_eq!(short(&handler.feed(chunk).unwrap()), *expected, "after {piece}");
        }
        let written: String = steps.iter().map(|(piece, _)| *piece).collect();
        let letters = run(&mut parsing(TextFormat::Xml), &texts(written.split("")));
        assert_eq!(letters, [start, "t:call_1: xy", end]);
    }
}

#[test]
fn ids_of_kimi_stay_distinct() {
    let call = |number: u32| {
        format!("<|tool_call_begin|>functions.time:{number}<|tool_call_argument_begin|>{{}}<|tool_call_end|>")
    };
    let mut handler = parsing(TextFormat::Kimi);
    run(&mut handler, &texts([format!("{}{}{}", call(0), call(1), call(0)).as_str()]));
    assert_eq!(
        invocations(&handler),
        ["functions.time:0 time {}", "functions.time:1 time {}", "t:call_1 time {}"]
    );
}

#[test]
fn both_kinds_of_calls_can_be_in_one_answer() {
    let mut handler = parsing(TextFormat::Xml);
    run(
        &mut handler,
        &chunks([
            Delta::text("<tool name=\"time\"/>"),
            call(0, "c1", "weather"),
            arguments(0, "{}"),
            DeltaKind::Reasoning("<tool name=\"time\"/>".into()).into(),
        ]),
    );
    assert_eq!(invocations(&handler), ["t:call_1 time {}", "c1 weather {}"]);
}

#[test]
fn answer_without_text_has_no_events() {
    for format in TextFormat::ALL {
        assert_eq!(run(&mut parsing(format), &texts([])), Vec::<String>::new());
        assert_eq!(run(&mut parsing(format), &texts(["", ""])), Vec::<String>::new());
    }
}
