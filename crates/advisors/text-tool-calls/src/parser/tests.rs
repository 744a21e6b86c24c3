//! Tests of `parser`.

use advisor_core::ToolDefinition;
use serde_json::json;

use super::*;

const BYTES: usize = 50_000;

fn tools() -> TextTools {
    let definition = |name| ToolDefinition::new(name, "", json!({"type": "object"}));
    TextTools::new(&["time", "write_file"].map(definition))
}

/// Counts the looks at the bytes of a text, which is parsed in these pieces.
fn steps_of<'a>(pieces: impl IntoIterator<Item = &'a str>) -> usize {
    let mut parser = TextCallParser::new(TextFormat::ALL, &tools(), ParserLimits::default());
    let mut events = Vec::new();
    steps::counted(|| {
        // One call too many ends a text.
        let _ = pieces.into_iter().try_for_each(|piece| parser.push(piece, &mut events));
        let _ = parser.finish(&mut events);
    })
}

/// Texts that begin a call again and again, and never end it: a beginning, and what is repeated.
fn hostile_texts() -> Vec<(&'static str, String)> {
    let space = " ".repeat(8000);
    let name = "a".repeat(8000);
    let repeated = [
        "[[SEG_START {",
        "[[SEG_START {\"",
        "[[SEG_START {\\\"",
        "[[SEG_START {\"\\",
        "[[SEG_START {} ",
        "<tool ",
        "<tool \"",
        "<tool '\"",
        "{",
        "[",
        "[{",
        "[,",
        "{\"",
        "{\"tool\"",
        "{\"tool\": ",
        "{\"name\": \"time\", \"x\": {",
        "`",
        "```",
        "```json\n",
        "```json\n{",
        "<|tool_call_begin|>",
        "<|tool_call_begin|>a",
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_begin|><|tool_call_begin|>",
        "<|tool▁call▁begin|>",
        "<|tool▁calls▁begin|><|tool▁call▁begin|>a",
        "<|DSML|invoke ",
        "<|DSML|invoke \"",
        "<|DSML|function_calls><|DSML|invoke ",
    ];
    let within = [
        ("<tool name=\"time\"><arguments>", "<a "),
        ("<tool name=\"time\"><arguments>", "<a '\""),
        ("<tool name=\"time\"><arg name=\"a\">", "<arg "),
        ("<tool name=\"time\"><arg name=\"a\">", "</ar"),
        ("<tool name=\"time\"><arguments>", "<!--"),
        ("<tool name=\"time\">x", "</tool"),
        ("{\"tool\": \"time\", \"arguments\": ", "{\"tool\": "),
        ("[{\"tool\": \"time\", \"arguments\": {}}, {", "\"a\": ["),
        ("[[SEG_START {\"type\": \"tool\", \"name\": \"time\"}]]", "[[SEG_END"),
        ("<|tool_call_begin|>time<|tool_call_argument_begin|>", "<|tool_call_end"),
        ("<|DSML|invoke name=\"time\">", "<|DSML|parameter "),
        ("<|DSML|invoke name=\"time\"><|DSML|parameter name=\"a\">", "</|DSML|paramete"),
    ];
    let mut texts: Vec<_> = repeated.map(|unit| ("", unit.to_owned())).to_vec();
    texts.extend(within.map(|(start, unit)| (start, unit.to_owned())));
    texts.extend(
        ["[[SEG_START", "[[SEG_START {}", "<tool", "[", "{", "<|DSML|invoke ", "<|tool_call_begin|>"]
            .map(|start| ("", format!("{start}{space}"))),
    );
    texts.push(("", format!("<|DSML|invoke {name}")));
    texts.push(("", format!("<|tool_call_begin|>{name}")));
    texts.push(("<tool name=\"time\"><arguments>", format!("<{name}></{name}")));
    texts.push(("<write_file path=\"a\">", space.clone()));
    texts.push(("<write_file path=\"a\">__START_CONTENT__", format!("__END_CONTENT__{space}")));
    texts
}

/// A text of 1 MiB must not take minutes, whatever a model writes.
#[test]
fn law_r1_hostile_text_takes_linear_work() {
    for (start, unit) in hostile_texts() {
        let text = start.to_owned() + &unit.repeat(BYTES / unit.len());
        let shown = text.get(..60).unwrap_or(&text);
        let whole = steps_of([text.as_str()]);
        assert!(whole <= 16 * text.len(), "{whole} steps at {shown:?}");
        let letters = steps_of(text.split_inclusive(|_| true));
        assert!(letters <= 160 * text.len(), "{letters} steps at the letters of {shown:?}");
    }
}
