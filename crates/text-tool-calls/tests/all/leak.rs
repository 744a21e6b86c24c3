//! The diagnostic of calls in a text that should have none.

use advisor_core::ToolDefinition;
use serde_json::json;
use text_tool_calls::{Markup, TextFormat, TextTools, find_leak};

#[test]
fn calls_in_a_text_are_found_and_ordinary_text_is_not() {
    let tools = TextTools::new([&ToolDefinition::new("time", "", json!({"type": "object"}))]);
    let format = |format| Some(Markup::Format(format));
    for (text, expected, snippet) in [
        ("Sure. [TOOL_CALL] time {\"a\": 1}", Some(Markup::Label), "[TOOL_CALL] time {\"a\": 1}"),
        (
            "x <tool name=\"time\"/> {\"tool\": \"time\"}",
            format(TextFormat::Xml),
            "<tool name=\"time\"/> {\"tool\": \"time\"}",
        ),
        (
            "{\"name\": \"time\", \"parameters\": {}}",
            format(TextFormat::Json),
            "{\"name\": \"time\", \"parameters\": {}}",
        ),
        (
            "[[SEG_START {\"type\": \"tool\", \"name\": \"time\"}]]",
            format(TextFormat::Sentinel),
            "[[SEG_START {\"type\": \"tool\", \"name\": \"time\"}]]",
        ),
        ("<｜DSML｜invoke name=\"time\">", format(TextFormat::DeepSeek), "<｜DSML｜invoke name=\"time\">"),
        (
            "a <|tool▁call▁begin|>time<|tool▁sep|>{}",
            format(TextFormat::DeepSeek),
            "<|tool▁call▁begin|>time<|tool▁sep|>{}",
        ),
        (
            "a <|tool_call_begin|>time<|tool_call_argument_begin|>",
            format(TextFormat::Kimi),
            "<|tool_call_begin|>time<|tool_call_argument_begin|>",
        ),
        ("[TOOL_CALL] other {}", None, ""),
        ("[TOOL_CALL] time", None, ""),
        ("Use <tool name=\"…\"> and {\"name\": \"Ann\"}; the time is [[now]].", None, ""),
        ("", None, ""),
    ] {
        let leak = find_leak(text, &tools);
        assert_eq!(leak.as_ref().map(|leak| leak.markup), expected, "{text}");
        assert_eq!(leak.map(|leak| leak.snippet).unwrap_or_default(), snippet, "{text}");
    }
    let long = format!("<tool name=\"time\">{}", "é".repeat(500));
    assert_eq!(find_leak(&long, &tools).map(|leak| leak.snippet.chars().count()), Some(240));
}
