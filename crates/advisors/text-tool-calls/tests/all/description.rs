//! The description of tools, and calls that the parser reads back.

use advisor_core::ToolDefinition;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use text_tool_calls::{ParserEvent, ParserLimits, TextCallParser, TextFormat, TextTools, ToolForm};

fn definitions() -> Vec<ToolDefinition> {
    let plan = json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "A \"short\" <title>.", "examples": ["Trip"]},
            "count": {"type": "integer", "default": 3},
            "exact": {"type": "boolean"},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "names": {"type": "array", "items": {"type": "string"}},
            "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}},
            "place": {"$ref": "#/$defs/step"},
        },
        "required": ["title", "steps"],
        "$defs": {"step": {
            "type": "object",
            "properties": {"do": {"type": "string"}, "days": {"type": "number"}},
            "required": ["do"],
        }},
    });
    let file = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    });
    vec![
        ToolDefinition::new("plan", "Plans & more.", plan),
        ToolDefinition::new("time", "Tells the time.", Value::Null),
        ToolDefinition::new("write_file", "Writes a file.", file),
    ]
}

/// The name and the arguments of each call in a text.
fn calls(format: TextFormat, text: &str) -> Vec<(String, Value)> {
    calls_of(&TextTools::new(&definitions()), format, text)
}

fn calls_of(tools: &TextTools, format: TextFormat, text: &str) -> Vec<(String, Value)> {
    let mut parser = TextCallParser::new([format], tools, ParserLimits::default());
    let mut events = Vec::new();
    parser.push(text, &mut events).unwrap();
    parser.finish(&mut events).unwrap();
    let mut calls: Vec<(String, String)> = Vec::new();
    for event in events {
        match event {
            ParserEvent::Opened(call) => calls.push((call.name.to_string(), String::new())),
            ParserEvent::Arguments(piece) => calls.last_mut().unwrap().1.push_str(&piece),
            ParserEvent::Closed { complete } => assert!(complete),
            _ => {}
        }
    }
    calls.into_iter().map(|(name, arguments)| (name, serde_json::from_str(&arguments).unwrap())).collect()
}

#[test]
fn examples_are_calls_that_the_parser_reads() {
    for format in TextFormat::ALL {
        for definition in &definitions() {
            let text = TextTools::new([definition]).describe(format);
            let (_, examples) = text.split_once("Example:\n").unwrap();
            let found = calls(format, examples);
            assert!(!found.is_empty(), "{examples}");
            for (name, arguments) in found {
                assert_eq!(name, definition.name.as_str());
                for required in definition.parameters["required"].as_array().into_iter().flatten() {
                    assert!(arguments.get(required.as_str().unwrap()).is_some(), "{required} in {arguments}");
                }
            }
        }
    }
}

#[test]
fn manifest_describes_every_tool_and_is_empty_without() {
    for format in TextFormat::ALL {
        let text = TextTools::new(&definitions()).describe(format);
        assert!(definitions().iter().all(|tool| text.contains(&format!("## {}\n", tool.name))), "{text}");
        assert_eq!(TextTools::new([]).describe(format), "");
    }
}

#[test]
fn arguments_that_are_no_json_are_written_unchanged() {
    let tools = TextTools::new(&definitions());
    assert_eq!(tools.call(TextFormat::Xml, "plan", "{oops"), "<tool name=\"plan\">\n{oops\n</tool>");
    assert_eq!(
        tools.call(TextFormat::Json, "plan", "{oops"),
        "{\"tool\": {\"function\": \"plan\", \"parameters\": \"{oops\"}}"
    );
    assert!(tools.call(TextFormat::Sentinel, "plan", "{oops").contains("\n{oops\n"));
    assert_eq!(tools.call(TextFormat::Xml, "time", ""), "<tool name=\"time\">\n</tool>");
}

#[test]
fn white_space_at_the_ends_of_texts_is_kept() {
    for text in ["\n]]>", " ]", "]]> ", "]]> </b>\n", " <b>&amp;</b>", "\n<![CDATA[x]]>\n"] {
        let arguments =
            json!({"title": text, "names": [text], "steps": [{"do": text}], "place": {"do": text}});
        for format in TextFormat::ALL {
            let written = TextTools::new(&definitions()).call(format, "plan", &arguments.to_string());
            assert_eq!(calls(format, &written), [("plan".to_owned(), arguments.clone())], "{written}");
        }
    }
}

/// Tools whose short forms are read in each way: as a value, between markers, and unchanged up to a closing tag.
fn tools_with_forms() -> (Vec<ToolDefinition>, Vec<ToolForm>) {
    let tool = |name: &str, body: &str| {
        let text = json!({"type": "string"});
        let members = json!({"path": text, "note": text, body: text});
        ToolDefinition::new(name, "", json!({"type": "object", "properties": members}))
    };
    let tools = vec![
        tool("write_file", "content"),
        tool("run_bash", "command"),
        tool("note", "text"),
        tool("ask", "q"),
    ];
    (tools, vec![ToolForm::new("note", "text").with_verbatim_body("", "")])
}

const BODIES: [(&str, &str); 4] =
    [("write_file", "content"), ("run_bash", "command"), ("note", "text"), ("ask", "q")];

/// Writes a call in each format, and checks that the same arguments are read.
fn assert_read_back(tool: &str, arguments: &Value) {
    let (definitions, forms) = tools_with_forms();
    for format in TextFormat::ALL {
        let tools = forms.iter().cloned().fold(TextTools::new(&definitions), TextTools::with_form);
        let written = tools.call(format, tool, &arguments.to_string());
        let read = calls_of(&tools, format, &written);
        assert_eq!(read, [(tool.to_owned(), arguments.clone())], "{written}");
    }
}

#[test]
fn law_s5_texts_with_markup_are_written_and_read_back() {
    for text in [
        "a < b && c",
        "a &lt; b &amp;amp; c",
        "</arg></arguments></tool>",
        " </arg><item> ",
        "__START_CONTENT__\nx\n__END_CONTENT__",
        "x__END_CONTENT__\n</arg>",
        "x__END_CONTENT__</ARG></tool>",
        "</write_file></run_bash></note>",
        "<![CDATA[x]]>",
        " <![CDATA[x]]></arg> ",
        "<!-- x -->",
        "[[SEG_END]]",
        "x [[seg_end]] [[SEG_END]]",
        "[[SEG_START {\"type\": \"text\"}]]",
        "```\n{\"tool\": {}}\n```",
        "\r\n\n x \n",
        "",
    ] {
        for (tool, body) in BODIES {
            assert_read_back(tool, &json!({"path": "a", body: text}));
            assert_read_back(tool, &json!({"path": text, "note": text, body: "x"}));
            assert_read_back(tool, &json!({"path": text, body: text}));
        }
    }
}

#[test]
fn description_in_xml_excepts_texts_that_are_read_unchanged() {
    let (definitions, forms) = tools_with_forms();
    let tools = forms.into_iter().fold(TextTools::new(&definitions), TextTools::with_form);
    let text = tools.describe(TextFormat::Xml);
    for exception in [
        "Text between `__START_CONTENT__` and `__END_CONTENT__` is an exception: write it unchanged,",
        "The argument `text` of `note` is an exception: write it unchanged,",
    ] {
        assert!(text.contains(exception), "{text}");
    }
    assert!(!text.contains("`command` of `run_bash` is"), "its text is decoded");
    let plain = TextTools::new(&definitions[1..2]).describe(TextFormat::Xml);
    assert!(plain.contains("Write `&lt;` for `<`") && !plain.contains("exception"), "{plain}");
}

/// Pieces of markup, and of the markers around texts.
const PIECES: [&str; 16] = [
    "<", "&", "&lt;", "&am", "</arg>", "<arg name=\"path\">", "</tool>", "__START_CONTENT__",
    "__END_CONTENT__", "_", "<![CDATA[", "]]>", "[[SEG_END]]", "[[seg_end", "\n", " x",
];

fn text() -> impl Strategy<Value = String> {
    "[a-c <>&\"'\\\\\n{}é\\]\\[/]{0,12}"
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    let step = || (text(), any::<i16>()).prop_map(|(name, days)| json!({"do": name, "days": days}));
    let members = (
        text(),
        any::<i32>(),
        any::<bool>(),
        prop::collection::vec(text(), 0..3),
        prop::collection::vec(step(), 0..3),
        step(),
    );
    members.prop_map(|(title, count, exact, names, steps, place)| {
        let arguments = json!({
            "title": title, "count": count, "exact": exact, "names": names, "steps": steps, "place": place,
        });
        arguments.as_object().unwrap().clone()
    })
}

proptest! {
    #[test]
    fn written_calls_are_read_back(arguments in arguments()) {
        for format in TextFormat::ALL {
            let written = TextTools::new(&definitions()).call(format, "plan", &Value::Object(arguments.clone()).to_string());
            let read = calls(format, &format!("Well.\n{written}\nSo."));
            prop_assert_eq!(read, vec![("plan".to_owned(), Value::Object(arguments.clone()))], "{}", written);
        }
    }

    #[test]
    fn law_s5_texts_of_short_forms_are_read_back(
        pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..8),
        path in text(),
        of in 0..BODIES.len(),
    ) {
        let (tool, body) = BODIES[of];
        assert_read_back(tool, &json!({"path": path, body: pieces.concat()}));
        assert_read_back(tool, &json!({"path": pieces.concat(), body: path}));
    }
}

#[test]
fn registered_form_is_described_and_read_back() {
    let schema = json!({
        "type": "object",
        "properties": {"statement": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["statement"],
    });
    let query = ToolDefinition::new("query", "Asks a database.", schema);
    let form = ToolForm::new("query", "statement");
    let tools = TextTools::new([&query]).with_form(form);
    for format in TextFormat::ALL {
        let written = tools.call(format, "query", "{\"statement\": \"a < b\", \"limit\": 2}");
        let read = calls_of(&tools, format, &written);
        assert_eq!(read, [("query".to_owned(), json!({"statement": "a < b", "limit": 2}))], "{written}");
    }
    let short = "<query limit=\"3\">a &lt; b</query>";
    let read = calls_of(&tools, TextFormat::Xml, short);
    assert_eq!(read, [("query".to_owned(), json!({"limit": 3, "statement": "a < b"}))]);
    assert_eq!(calls_of(&TextTools::new([&query]), TextFormat::Xml, short), []);
}

#[test]
fn text_of_a_short_form_is_the_last_argument() {
    let text = TextTools::new(&definitions()).call(
        TextFormat::Xml,
        "write_file",
        &json!({"content": "text", "path": "a.txt"}).to_string(),
    );
    let (path, content) = (text.find("name=\"path\""), text.find("name=\"content\""));
    assert!(path.is_some() && path < content, "{text}");
}

/// The schema of a server's tool may refer to itself, or be deep: its members have members of the same number, and its values
/// an indentation of their own depth.
#[test]
fn law_r1_description_takes_a_multiple_of_the_definition() {
    let member = json!({"$ref": "#", "description": "d".repeat(50)});
    let members: Map<_, _> = (0..60).map(|number| (format!("m{number}"), member.clone())).collect();
    let all: Vec<_> = members.keys().cloned().collect();
    let itself = json!({"type": "object", "properties": members, "required": all});
    let long = json!({"type": "string", "examples": ["e".repeat(10_000)]});
    let members: Map<_, _> =
        (0..500).map(|number| (format!("m{number}"), json!({"$ref": "#/$defs/long"}))).collect();
    let repeated = json!({"type": "object", "properties": members, "$defs": {"long": long}});
    let deep = (0..100).fold(json!(vec![1; 5_000]), |value, _| json!([value]));
    let deep = json!({"type": "object", "properties": {"a": {"enum": [deep]}}});
    for schema in [itself, repeated, deep] {
        let definition = ToolDefinition::new("bomb", "A tool.", schema);
        let most = 20 * definition.parameters.to_string().len() + 8_192;
        for format in TextFormat::ALL {
            let text = TextTools::new([&definition]).describe(format);
            assert!(text.len() <= 2 * most, "{format:?}: {} bytes", text.len());
        }
    }
}

/// Such arguments are not parsed, and what is in them ends no call.
#[test]
fn arguments_of_many_values_stay_within_their_call() {
    let tools = TextTools::new(&definitions());
    let arguments = format!("{{\"a\": \"</tool>\", \"b\": [{}]}}", vec!["0"; 140_000].join(","));
    let written = tools.call(TextFormat::Xml, "plan", &arguments);
    assert_eq!(written.matches("</tool>").count(), 1);
    assert_eq!(
        tools.call(TextFormat::Xml, "plan", "<b").matches("<b").count(),
        1,
        "what is no JSON stays as it is"
    );
}
