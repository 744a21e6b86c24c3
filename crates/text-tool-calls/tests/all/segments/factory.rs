//! Without tools, every format passes text through.

use text_tool_calls::segments::SegmentHandler;
use text_tool_calls::{TextFormat, TextTools, ToolCallFormat};

use crate::segments::common::{call, chunks, run, texts};

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
