use text_tool_calls::{ParserSettings, TextFormat};

use crate::common::{Item, at_all_splits, check};

#[test]
fn law_s5_deepseek_markup_is_read() {
    let markup = "A\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n\
        <｜DSML｜parameter name=\"city\" string=\"true\">Os \"lo\"</｜DSML｜parameter>\n\
        <｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n\
        <｜DSML｜invoke name=\"time\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>";
    let expected = "A\n\n⟦weather {\"city\":\"Os \\\"lo\\\"\",\"days\":3}⟧⟦time {}⟧";
    check(
        TextFormat::DeepSeek,
        &[
            (markup, expected),
            (markup.replace('｜', "|").as_str(), expected),
            (markup.replace("function_calls", "tool_calls").as_str(), expected),
            ("<｜DSML｜invoke name=\"time\"></｜DSML｜invoke> B", "⟦time {}⟧ B"),
            ("<｜DSML｜function_calls>", ""),
            (
                "<｜DSML｜invoke name=\"weather\"><｜DSML｜parameter name=\"city\" string=\"true\">Os",
                "⟦weather {\"city\":\"Os…",
            ),
            ("a < b <｜DSML", "a < b <｜DSML"),
            ("</｜DSML｜function_calls> x", "</｜DSML｜function_calls> x"),
            ("<｜DSML｜invoke name=time> x", "<｜DSML｜invoke name=time> x"),
            ("<｜DSML｜invoke <｜DSML｜invoke name=\"time\">", "<｜DSML｜invoke ⟦time …"),
        ],
    );
}

#[test]
fn law_s5_kimi_markup_is_read() {
    let markup = "A <|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{\"city\": \"<|x|>\"}\
        <|tool_call_end|><|tool_call_begin|>functions.time:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|> B";
    check(
        TextFormat::Kimi,
        &[
            (markup, "A ⟦weather {\"city\": \"<|x|>\"}⟧⟦time {}⟧ B"),
            ("<|tool_call_begin|>time<|tool_call_argument_begin|>{}<|tool_call_end|>", "⟦time {}⟧"),
            ("<|tool_call_begin|>time<|tool_call_argument_begin|>{", "⟦time {…"),
            ("<|tool_call_begin|><|tool_call_argument_begin|>{}<|tool_call_end|>", "⟦unnamed_tool {}⟧"),
            ("<|tool_call_begin|>time", "<|tool_call_begin|>time"),
            ("<|tool_calls", "<|tool_calls"),
        ],
    );
    let items = at_all_splits(&[TextFormat::Kimi], &ParserSettings::default(), markup);
    let ids: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            Item::Call { opened, .. } => opened.id.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["functions.weather:0", "functions.time:1"]);
}
