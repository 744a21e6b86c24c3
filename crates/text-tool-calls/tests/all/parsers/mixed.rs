//! Several formats are read at once, and without formats all is text.

use text_tool_calls::{ParserLimits, TextFormat};

use crate::parsers::common::check_with;

#[test]
fn law_s5_several_formats_can_be_read_at_once() {
    check_with(
        &TextFormat::ALL,
        ParserLimits::default(),
        &[
            (
                "<tool name=\"time\"/> {\"tool\": \"time\"} [[SEG_START {\"type\": \"tool\", \"name\": \"time\"}]][[SEG_END]]",
                "⟦time {}⟧⟦time ⟧⟦time ⟧",
            ),
            (
                "<|tool_call_begin|>time<|tool_call_argument_begin|>{}<|tool_call_end|><｜DSML｜invoke name=\"time\"></｜DSML｜invoke>",
                "⟦time {}⟧⟦time {}⟧",
            ),
            ("[1] <b> {x}", "[1] <b> {x}"),
        ],
    );
}

#[test]
fn without_formats_all_is_text() {
    let text = "<tool name=\"time\"/> {\"tool\": \"time\"}\n```\n";
    check_with(&[], ParserLimits::default(), &[(text, text)]);
}
