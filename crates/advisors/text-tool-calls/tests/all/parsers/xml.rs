//! Calls in XML: arguments typed by their schema, entities, short forms, protected text and cut calls.

use advisor_core::ToolDefinition;
use serde_json::json;
use text_tool_calls::{ParserLimits, TextCallParser, TextFormat, TextTools, ToolForm};

use crate::parsers::common::{check, items, shown};

const XML: TextFormat = TextFormat::Xml;

#[test]
fn law_s5_arguments_are_elements_with_names() {
    check(
        XML,
        &[
            (
                "Hi <tool name=\"weather\"><arguments><arg name=\"city\">Oslo</arg><arg name=\"days\">3</arg></arguments></tool> there",
                "Hi ⟦weather {\"city\":\"Oslo\",\"days\":3}⟧ there",
            ),
            (
                "<tool name='weather'>\n <arg name='city'>\n  Oslo \n </arg>\n</tool>",
                "⟦weather {\"city\":\"Oslo\"}⟧",
            ),
            ("<TOOL other=\"x\" NAME=\"time\" ></TOOL>", "⟦time {}⟧"),
            ("<tool name=\"time\"/>", "⟦time {}⟧"),
            // The older form: an element per argument.
            (
                "<tool name=\"weather\"><arguments><city>Oslo</city><days> 3 </days></arguments></tool>",
                "⟦weather {\"city\":\"Oslo\",\"days\":3}⟧",
            ),
            ("<tool name=\"weather\"><arg name=\"city\"/></tool>", "⟦weather {\"city\":\"\"}⟧"),
            (
                "<tool name=\"weather\" days=\"2\"><arg name=\"city\">a</arg><arg name=\"days\">3</arg></tool>",
                "⟦weather {\"days\":2,\"city\":\"a\"}⟧",
            ),
            // A body without elements is the arguments as they are.
            ("<tool name=\"weather\">\n{\"city\": \"Oslo\"}</tool>", "⟦weather {\"city\": \"Oslo\"}⟧"),
            ("<tool name=\"weather\">Oslo</tool>", "⟦weather Oslo⟧"),
        ],
    );
}

/// Such a text is passed on in the arguments, which are then no JSON object, so the call does not run.
#[test]
fn law_t2_broken_arguments_in_xml_are_kept() {
    let call = |body: &str| format!("<tool name=\"weather\">{body}</tool>");
    let city = "<arg name=\"city\">Oslo</arg>";
    for (body, expected) in [
        ("<arguments><arg name=city>Oslo</arg></arguments>", "<arg name=city>Oslo</arg></arguments>"),
        (&format!("{city}<arg name=days>3</arg>"), "{\"city\":\"Oslo\"<arg name=days>3</arg>"),
        (
            &format!("{city} hm <ARG name=\"days\" x>3</ARG>"),
            "{\"city\":\"Oslo\"hm <ARG name=\"days\" x>3</ARG>",
        ),
        (&format!("{city}<days =3>3</days>"), "{\"city\":\"Oslo\"<days =3>3</days>"),
        (
            &format!("{city}<argument name=days>3</argument>"),
            "{\"city\":\"Oslo\"<argument name=days>3</argument>",
        ),
        (&format!("{city}<arg name=\"days>3</arg>"), "{\"city\":\"Oslo\"<arg name=\"days>3</arg>"),
        ("<arguments>{\"city\": \"Oslo\"}</arguments>", "{\"city\": \"Oslo\"}</arguments>"),
        ("<arguments>Oslo</arguments>", "Oslo</arguments>"),
        (&format!("{city} hm "), "{\"city\":\"Oslo\"hm "),
        (&format!("<arguments>{city}\n</arguments>\n"), "{\"city\":\"Oslo\"}"),
    ] {
        check(XML, &[(call(body).as_str(), format!("⟦weather {expected}⟧").as_str())]);
    }
}

#[test]
fn law_s5_values_have_the_type_of_their_schema() {
    let plan = |argument: &str, value: &str| {
        format!("<tool name=\"plan\"><arg name=\"{argument}\">{value}</arg></tool>")
    };
    for (argument, value, expected) in [
        ("count", "7", "7"),
        ("count", "7.5", "\"7.5\""),
        ("count", "seven", "\"seven\""),
        ("share", "7", "7"),
        ("share", " 0.25 ", "0.25"),
        ("exact", "True", "true"),
        ("exact", "no", "\"no\""),
        ("note", "null", "\"null\""),
        ("title", "7", "\"7\""),
        ("names", "<item>a</item> <item>b &amp; c</item>", "[\"a\",\"b & c\"]"),
        ("names", "<item>7</item>", "[\"7\"]"),
        ("names", "[\"a\"]", "[\"a\"]"),
        ("names", "", "[]"),
        ("names", "a, b", "\"a, b\""),
        ("steps", "<item><days>2</days><do>x</do></item>", "[{\"days\":2,\"do\":\"x\"}]"),
        ("steps", "<item><arg name=\"do\">x</arg></item>", "[{\"do\":\"x\"}]"),
        ("steps", "<item><do>&quot;7&quot;</do></item>", "[{\"do\":\"\\\"7\\\"\"}]"),
        ("steps", "<step><do>x</do></step><step><do>y</do></step>", "[{\"do\":\"x\"},{\"do\":\"y\"}]"),
        ("options", "<arg name=\"days\">2</arg><arg name=\"do\">x</arg>", "{\"days\":2,\"do\":\"x\"}"),
        ("options", "{\"days\": 2}", "{\"days\":2}"),
        ("options", "null", "null"),
        // Without a schema: text, or what its elements say.
        ("other", "7", "\"7\""),
        ("other", "<a>1</a><b><item>2</item></b>", "{\"a\":\"1\",\"b\":[\"2\"]}"),
        ("other", "x <b>y</b>", "\"x <b>y</b>\""),
    ] {
        let expected = format!("⟦plan {{\"{argument}\":{expected}}}⟧");
        check(XML, &[(plan(argument, value).as_str(), expected.as_str())]);
    }
}

#[test]
fn law_s5_entities_are_decoded_once_in_values() {
    check(
        XML,
        &[
            (
                "<tool name=\"weather\"><arg name=\"city\">a &amp;&amp; b &lt;c&gt; &quot;d&apos; &amp;amp; &nbsp; & e</arg></tool>",
                "⟦weather {\"city\":\"a && b <c> \\\"d' &amp; &nbsp; & e\"}⟧",
            ),
            (
                "<tool name=\"weather\"><arg name=\"city\">a<b && c < d <b>e</b></arg></tool>",
                "⟦weather {\"city\":\"a<b && c < d <b>e</b>\"}⟧",
            ),
            (
                "<tool name=\"weather\"><arg name=\"city\"> <![CDATA[ <b>&amp;</b> ]]></arg></tool>",
                "⟦weather {\"city\":\" <b>&amp;</b> \"}⟧",
            ),
            ("<run_bash>cd a &amp;&amp; ls</run_bash>", "⟦run_bash {\"command\":\"cd a && ls\"}⟧"),
        ],
    );
}

#[test]
fn law_s5_short_forms_are_calls_of_their_tool() {
    check(
        XML,
        &[
            (
                "A <write_file path=\"a.txt\">\nx < y &amp; </b>\n</write_file> B",
                "A ⟦write_file {\"path\":\"a.txt\",\"content\":\"x < y &amp; </b>\\n\"}⟧ B",
            ),
            ("<Write_File PATH=\"a\">x</WRITE_FILE>", "<Write_File PATH=\"a\">x</WRITE_FILE>"),
            ("<Write_File path=\"a\">x</WRITE_FILE>", "⟦write_file {\"path\":\"a\",\"content\":\"x\"}⟧"),
            ("<write_file>x</write_file>", "<write_file>x</write_file>"),
            ("<write_file path=\"\">x</write_file>", "<write_file path=\"\">x</write_file>"),
            ("<run_bash>\n# list\nls -la\n</run_bash>", "⟦run_bash {\"command\":\"# list\\nls -la\"}⟧"),
            (
                "<run_bash timeout_seconds=\"5\" background=\"true\">ls</run_bash>",
                "⟦run_bash {\"timeout_seconds\":5,\"command\":\"ls\"}⟧",
            ),
            // The first value of an argument counts.
            ("<run_bash command=\"a\">b</run_bash>", "⟦run_bash {\"command\":\"a\"}⟧"),
            ("<run_bash command=\"a\"/>", "⟦run_bash {\"command\":\"a\"}⟧"),
            (
                "<run_bash>ls</run_bash><tool name=\"time\"></tool>.",
                "⟦run_bash {\"command\":\"ls\"}⟧⟦time {}⟧.",
            ),
        ],
    );
}

#[test]
fn law_s5_markers_protect_the_text_between_them() {
    let file = |content: &str| {
        format!(
            "<tool name=\"write_file\"><arguments><arg name=\"path\">a</arg><arg name=\"content\">{content}</arg></arguments></tool>"
        )
    };
    for (content, expected) in [
        ("\n__START_CONTENT__\nx\n__END_CONTENT__\n    ", "x\\n"),
        ("__START_CONTENT__</arg></tool>__END_CONTENT__", "</arg></tool>"),
        ("__START_CONTENT__a __END_CONTENT__ b__END_CONTENT__", "a __END_CONTENT__ b"),
        ("__START_CONTENT____END_CONTENT____END_CONTENT__", "__END_CONTENT__"),
        ("__START_CONTENT__\r\nx__END_CONTENT__", "x"),
        ("\n\nx __START_CONTENT__ y", "\\nx __START_CONTENT__ y"),
        ("__START_CON", "__START_CON"),
        ("<p>a &amp; b</p> <![CDATA[c]]>", "<p>a &amp; b</p> <![CDATA[c]]>"),
        ("", ""),
    ] {
        let expected = format!("⟦write_file {{\"path\":\"a\",\"content\":\"{expected}\"}}⟧");
        check(XML, &[(file(content).as_str(), expected.as_str())]);
    }
    check(
        XML,
        &[(
            "<tool name=\"edit_file\"><arg name=\"path\">a</arg><arg name=\"patch\">__START_PATCH__\n--- a\n+++ b\n@@ -1 +1 @@\n-<x>\n+&y\n__END_PATCH__</arg></tool>",
            "⟦edit_file {\"path\":\"a\",\"patch\":\"--- a\\n+++ b\\n@@ -1 +1 @@\\n-<x>\\n+&y\\n\"}⟧",
        )],
    );
}

#[test]
fn law_s5_apparent_call_stays_text() {
    for text in [
        "<toolbox name=\"time\"></toolbox>",
        "<tool></tool>",
        "<tool name=\"\"></tool>",
        "<tool name=time></tool>",
        "<tool 3 < 5>",
        "a < b > c",
        "</tool>",
        "<tool name=\"time\"",
        "<too",
        "<",
        "<write_files path=\"a\">x</write_files>",
        "```\nx\n```\n",
        "```\n",
        "",
        " \n",
    ] {
        check(XML, &[(text, text)]);
    }
    check(XML, &[("<tool name=\"x\"></tool>", "⟦x {}⟧"), ("<tool <tool name=\"time\"/>", "<tool ⟦time {}⟧")]);
}

#[test]
fn law_s5_cut_call_is_incomplete() {
    check(
        XML,
        &[
            ("<tool name=\"weather\"><arg name=\"city\">Os &am", "⟦weather …"),
            ("<tool name=\"weather\"><arg name=\"city\">a</arg></to", "⟦weather {\"city\":\"a\"</to…"),
            ("<tool name=\"time\">", "⟦time …"),
            ("<write_file path=\"a\">x</write_fi", "⟦write_file {\"path\":\"a\",\"content\":\"x</write_fi…"),
            ("<tool name=\"plan\"><arg name=\"names\"><item>a</item>", "⟦plan …"),
        ],
    );
}

#[test]
fn white_space_and_fences_around_calls_are_markup() {
    let call = "<tool name=\"time\"/>";
    check(
        XML,
        &[
            (format!("\n{call}\n\n{call}\n").as_str(), "⟦time {}⟧⟦time {}⟧"),
            (format!("Hi.\n{call}\n\nBye. ").as_str(), "Hi.\n⟦time {}⟧\n\nBye. "),
            (format!("So:\n```xml\n{call}\n{call}\n```\nBye").as_str(), "So:\n⟦time {}⟧⟦time {}⟧\nBye"),
            (format!("```\n{call}```").as_str(), "⟦time {}⟧"),
            (format!("```\n{call}\nx\n```\n").as_str(), "⟦time {}⟧\nx\n```\n"),
            (format!("{call}\n```rust\nx\n```").as_str(), "⟦time {}⟧\n```rust\nx\n```"),
            (format!("{call}```").as_str(), "⟦time {}⟧```"),
        ],
    );
}

#[test]
fn body_without_markers_ends_at_its_closing_tag() {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let note = ToolDefinition::new("note", "Keeps a note.", schema);
    for (start, end) in [("", ""), ("", "END"), ("START", "")] {
        let form = ToolForm::new("note", "text").with_verbatim_body(start, end);
        let mut parser =
            TextCallParser::new([XML], &TextTools::new([&note]).with_form(form), ParserLimits::default());
        let mut events = Vec::new();
        parser.push("<note>  hi</note> Done.", &mut events).unwrap();
        parser.finish(&mut events).unwrap();
        assert_eq!(shown(&items(&events)), "⟦note {\"text\":\"  hi\"}⟧ Done.", "{start:?} and {end:?}");
    }
}
