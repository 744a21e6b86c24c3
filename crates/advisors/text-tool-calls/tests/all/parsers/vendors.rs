//! Calls in the markup of DeepSeek, newer and older, and of Kimi, and in several formats at once.

use text_tool_calls::{ParserLimits, TextFormat};

use crate::parsers::common::{Item, at_all_splits, check, check_with};

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
            ("<|DSML|invoke name=\" time \"></|DSML|invoke>", "⟦time {}⟧"),
            ("<|DSML|invoke name=\" \"></|DSML|invoke>", "⟦unnamed_tool {}⟧"),
        ],
    );
}

#[test]
fn law_s5_older_deepseek_tokens_are_read() {
    let call = |header: &str, body: &str| {
        format!("<｜tool▁call▁begin｜>{header}<｜tool▁sep｜>{body}<｜tool▁call▁end｜>")
    };
    let fenced = |name: &str, json: &str| call("function", &format!("{name}\n```json\n{json}\n```"));
    let list = |calls: &str| format!("A <｜tool▁calls▁begin｜>{calls}<｜tool▁calls▁end｜> B");
    let city = "{\"city\": \"<｜x｜>\"}";
    let (first, second) = (call("weather", city), call("time", "{}"));
    let expected = format!("A ⟦weather {city}⟧⟦time {{}}⟧ B");
    let inner = "{\"city\": \"\n```json\"}";
    for (text, expected) in [
        (list(&format!("{first}{second}")), expected.as_str()),
        (list(&format!("{}\n{}", fenced("weather", city), fenced("time", "{}"))), &expected),
        (list(&fenced("weather", inner)), &format!("A ⟦weather {inner}⟧ B")),
        (format!("{second} B"), "⟦time {}⟧ B"),
        (format!("{} B", fenced(" time", "{}")), "⟦time {}⟧ B"),
        (call("function", "{}"), "⟦function {}⟧"),
        (call(" ", "{}"), "⟦unnamed_tool {}⟧"),
        ("<｜tool▁call▁begin｜>time<｜tool▁sep｜>{".into(), "⟦time {…"),
        (
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>ti".into(),
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>ti",
        ),
        ("<｜tool▁call▁begin｜>time".into(), "<｜tool▁call▁begin｜>time"),
        ("<｜tool▁calls".into(), "<｜tool▁calls"),
        ("<｜tool▁calls▁begin｜>".into(), ""),
        (format!("<｜tool▁call▁begin｜>a{second}"), "<｜tool▁call▁begin｜>a⟦time {}⟧"),
    ] {
        let [ascii_text, ascii_expected] = [&text, expected].map(|text| text.replace('｜', "|"));
        check(TextFormat::DeepSeek, &[(text.as_str(), expected), (&ascii_text, &ascii_expected)]);
    }
}

/// A call never runs without an argument that the model wrote, so what is no parameter is in the arguments.
#[test]
fn law_t2_deepseek_text_between_parameters_is_kept() {
    let call = |body: &str| format!("<|DSML|invoke name=\"weather\">{body}</|DSML|invoke>");
    let city = "<|DSML|parameter name=\"city\" string=\"true\">Oslo</|DSML|parameter>";
    for (body, arguments) in [
        ("\n{\"city\": \"Oslo\"}\n", "{\"city\": \"Oslo\"}\n"),
        (
            "<|DSML|parameter name=city>Oslo</|DSML|parameter>",
            "<|DSML|parameter name=city>Oslo</|DSML|parameter>",
        ),
        ("<|DSML|parameter>Oslo</|DSML|parameter>", "<|DSML|parameter>Oslo</|DSML|parameter>"),
        (format!("{city} hm ").as_str(), "{\"city\":\"Oslo\"hm "),
        (format!("{city}\n\n").as_str(), "{\"city\":\"Oslo\"}"),
        ("", "{}"),
    ] {
        check(TextFormat::DeepSeek, &[(call(body).as_str(), format!("⟦weather {arguments}⟧").as_str())]);
    }
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
            ("<|tool_call_begin|>functions. time :0<|tool_call_argument_begin|>{", "⟦time {…"),
            (
                "<|tool_call_begin|>a<|tool_call_begin|>time<|tool_call_argument_begin|>{",
                "<|tool_call_begin|>a⟦time {…",
            ),
        ],
    );
    let items = at_all_splits(&[TextFormat::Kimi], ParserLimits::default(), markup);
    let ids: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            Item::Call { opened, .. } => opened.id.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["functions.weather:0", "functions.time:1"]);
}

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
