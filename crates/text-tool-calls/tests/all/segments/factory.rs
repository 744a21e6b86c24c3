//! `SegmentHandler::new` reads calls as the format says; a provider's format is a default.

use text_tool_calls::segments::SegmentHandler;
use text_tool_calls::{TextFormat, TextTools, ToolCallFormat};

use crate::segments::common::{call, chunks, invocations, run, texts, tools};

#[test]
fn without_tools_all_text_passes_through() {
    for format in [ToolCallFormat::Api, ToolCallFormat::Text(TextFormat::Xml)] {
        let mut handler = SegmentHandler::new(format, &TextTools::default());
        let mut answer = texts(["<tool name=\"time\"/>"]);
        answer.extend(chunks([call(0, "c1", "time")]));
        let events = run(&mut handler, &answer);
        assert_eq!(events, ["text_1 start \"text\"", "text_1: <tool name=\"time\"/>", "text_1 end"]);
        assert_eq!(handler.invocations().count(), 0);
    }
}

#[test]
fn format_chooses_how_calls_are_read() {
    for (format, text) in [
        (TextFormat::Xml, "<tool name=\"time\"/>"),
        (TextFormat::Json, "{\"tool\": \"time\"}"),
        (TextFormat::Sentinel, "[[SEG_START {\"type\": \"tool\", \"name\": \"time\"}]][[SEG_END]]"),
    ] {
        let mut handler = SegmentHandler::new(ToolCallFormat::Text(format), &tools());
        run(&mut handler, &texts([text]));
        assert_eq!(invocations(&handler), ["call_1 time {}"]);
        let mut native = SegmentHandler::new(ToolCallFormat::Api, &tools());
        assert_eq!(run(&mut native, &texts([text]))[1], format!("text_1: {text}"));
        assert_eq!(native.invocations().count(), 0);
    }
}
