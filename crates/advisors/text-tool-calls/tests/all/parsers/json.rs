//! Calls in JSON: the shapes of providers, lists, fences and cut calls; other JSON stays text.

use text_tool_calls::{ParserLimits, TextFormat};

use crate::parsers::common::{Item, at_all_splits, check};

const JSON: TextFormat = TextFormat::Json;

#[test]
fn law_s5_known_shapes_of_calls_are_calls() {
    check(
        JSON,
        &[
            // The default shape.
            (
                "A {\"tool\": {\"function\": \"weather\", \"parameters\": {\"city\": \"Oslo\"}}} B",
                "A ⟦weather {\"city\": \"Oslo\"}⟧ B",
            ),
            (
                "{\"tool\": {\"function\": {\"name\": \"weather\", \"arguments\": {\"city\": \"a\"}}}}",
                "⟦weather {\"city\": \"a\"}⟧",
            ),
            ("{\"tool\": \"time\"}", "⟦time ⟧"),
            ("{\"tool\": \"weather\", \"arguments\": {\"city\": \"a\"}}", "⟦weather {\"city\": \"a\"}⟧"),
            // OpenAI's.
            ("{\"function\": \"time\", \"parameters\": {}}", "⟦time {}⟧"),
            (
                "{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"arguments\": \"{\\\"city\\\": \\\"\\u00e5\\\"}\"}}",
                "⟦weather {\"city\": \"å\"}⟧",
            ),
            (
                "{\"tool_calls\": [{\"id\": \"c1\", \"function\": {\"name\": \"time\", \"arguments\": \"{}\"}}, {\"function\": {\"name\": \"weather\", \"arguments\": {\"days\": 2}}}]}",
                "⟦time {}⟧⟦weather {\"days\": 2}⟧",
            ),
            ("{ \"tools\" : [ { \"name\" : \"time\" } ] }.", "⟦time ⟧."),
            // Gemini's, and that of Llama's models.
            ("{\"name\": \"weather\", \"args\": {\"city\": \"a\"}}", "⟦weather {\"city\": \"a\"}⟧"),
            (
                "[{\"name\": \"weather\", \"args\": {\"days\": 1}}, {\"name\": \"time\", \"args\": {}}]",
                "⟦weather {\"days\": 1}⟧⟦time {}⟧",
            ),
            (
                "{\"type\": \"function\", \"name\": \"weather\", \"parameters\": {\"city\": \"a\"}}",
                "⟦weather {\"city\": \"a\"}⟧",
            ),
            // Arguments before the name.
            ("{\"arguments\": {\"city\": \"a\"}, \"name\": \"weather\"}", "⟦weather {\"city\": \"a\"}⟧"),
            ("{\"name\": \"time\", \"arguments\": null}", "⟦time ⟧"),
            ("{\"name\": \"time\", \"arguments\": 7}", "⟦time 7⟧"),
        ],
    );
}

#[test]
fn law_s5_brackets_and_quotes_in_strings_are_content() {
    check(
        JSON,
        &[
            (
                "{\"name\": \"weather\", \"arguments\": {\"city\": \"}]\\\"}{[ \\\\\"}} x",
                "⟦weather {\"city\": \"}]\\\"}{[ \\\\\"}⟧ x",
            ),
            (
                "{\"name\": \"plan\", \"arguments\": {\"steps\": [{\"do\": \"a\"}, []], \"options\": {\"days\": {}}}}",
                "⟦plan {\"steps\": [{\"do\": \"a\"}, []], \"options\": {\"days\": {}}}⟧",
            ),
            // Unknown members of a call that is certain.
            (
                "{\"name\": \"time\", \"arguments\": {}, \"why\": {\"name\": [\"x\"]}, \"then\": 3}",
                "⟦time {}⟧",
            ),
        ],
    );
}

#[test]
fn law_s5_other_json_is_text() {
    for text in [
        "{x} {\"a\": 1} [1] [{\"b\": 2}] {} [] [[]] {{",
        "{\"name\": \"Ann\", \"arguments\": {}}",
        "{\"name\": \"weather\"}",
        "{\"name\": \"weather\", \"description\": \"Tells it.\", \"parameters\": {\"type\": \"object\"}}",
        // A call in data is not made.
        "{\"messages\": [{\"name\": \"time\", \"arguments\": {}}]}",
        "[{\"x\": 1}, {\"name\": \"time\", \"arguments\": {}}]",
        "{\"log\": \"{\\\"name\\\": \", \"tool\": \"time\"}",
        "{\"tool",
        "{\"tool\": {\"function\": \"nothing\", \"parameters\": {}}}",
        "{\"name\": 7, \"arguments\": {}}",
        "{\"tool_calls\": []}",
        "```json\n{\"a\": 1}\n```",
        "{\"tool\": {\"tool\": {",
    ] {
        check(JSON, &[(text, text)]);
    }
}

#[test]
fn law_s5_calls_after_other_json_are_calls() {
    let call = "{\"tool\": \"time\"}";
    for text in [
        "{\"a\": {\"b\": 1}} ", "{\"a\": [\n\n", "```json\n{\"a\": \n```\n", "use { and [x ", "{{", "[1, 2] ",
    ] {
        check(JSON, &[(format!("{text}{call}").as_str(), format!("{text}⟦time ⟧").as_str())]);
    }
}

#[test]
fn law_s5_a_list_never_loses_a_call() {
    check(
        JSON,
        &[
            (
                "{\"tool_calls\": [{\"name\": \"time\"}, {\"arguments\": {\"a\": 1}}]}",
                "⟦time ⟧⟦unnamed_tool {\"a\": 1}⟧",
            ),
            (
                "{\"tool_calls\": [{\"name\": \"time\"}, {\"name\": \"nothing\", \"arguments\": {}}]}",
                "⟦time ⟧⟦nothing {}⟧",
            ),
            (
                "[{\"name\": \"time\", \"args\": {}}, {\"name\": \"\", \"args\": {}}]",
                "⟦time {}⟧⟦unnamed_tool {}⟧",
            ),
            ("{\"tool_calls\": [{\"name\": \"time\"}, {\"na", "⟦time ⟧, {\"na"),
        ],
    );
    check(
        JSON,
        &[
            ("{\"tool_calls\": [{\"name\": \"time\"}], \"content\": \"a\", \"n\": 1} b", "⟦time ⟧ b"),
            // The text after a list that never ends is not lost.
            ("[{\"tool\": \"time\"}, and text", "⟦time ⟧, and text"),
        ],
    );
}

#[test]
fn law_s5_cut_call_is_incomplete() {
    for (cut, expected) in [
        ("{\"name\": \"weather\", \"arguments\": {\"city\": \"Os", "⟦weather {\"city\": \"Os…"),
        ("{\"name\": \"weather\", \"arguments\": \"{\\\"city\\\": \\", "⟦weather {\"city\": \u{fffd}…"),
        ("{\"tool\": {\"function\": \"time\", \"parameters\": {}}", "⟦time {}…"),
        ("[{\"tool\": \"time\"}, {\"tool\": \"weather\"", "⟦time ⟧⟦weather …"),
    ] {
        check(JSON, &[(cut, expected)]);
    }
}

/// What the model wrote goes on to the check of the arguments, also if it is no JSON.
#[test]
fn law_t2_broken_arguments_in_json_are_kept() {
    check(
        JSON,
        &[
            (
                "{\"name\": \"weather\", \"arguments\": {\"city\": \"a\nb\"}}",
                "⟦weather {\"city\": \"a\nb\"}⟧",
            ),
            ("{\"name\": \"weather\", \"arguments\": {\"city\": None,}}", "⟦weather {\"city\": None,}⟧"),
        ],
    );
}

#[test]
fn fences_are_markup_only_around_calls() {
    let unchanged = |text| (text, text);
    check(
        JSON,
        &[
            ("So:\n```json\n{\"tool\": \"time\"}\n```\nBye", "So:\n⟦time ⟧\nBye"),
            ("```json\n{\"tool\": \"time\"}\n```\n```json\n{\"tool\": \"time\"}\n```", "⟦time ⟧⟦time ⟧"),
            // Behind other words.
            ("Sure: ```json\n{\"tool\": \"time\"}\n``` Bye", "Sure: ⟦time ⟧ Bye"),
            ("Sure:```\r\n{\"tool\": \"time\"}\r\n```", "Sure:⟦time ⟧"),
            unchanged("Run `ls`, or ```ls -a``` here: `"),
            unchanged("So ```json\n{\"a\": 1}\n``` Bye"),
            unchanged("Write ``` and\n"),
            unchanged("It ends with ```js"),
            // On the line of a call.
            ("Sure: ```{\"tool\": \"time\"}``` Bye", "Sure: ⟦time ⟧ Bye"),
            ("Sure: ```json {\"tool\": \"time\"}``` Bye", "Sure: ⟦time ⟧ Bye"),
            ("```json {\"tool\": \"time\"}\n```", "⟦time ⟧"),
            ("```[{\"name\": \"time\", \"args\": {}}]```", "⟦time {}⟧"),
            (
                "So ```{\"a\": 1}```\nThen ```json\n{\"tool\": \"time\"}\n```!",
                "So ```{\"a\": 1}```\nThen ⟦time ⟧!",
            ),
            unchanged("So ```json {\"a\": 1}``` Bye"),
            unchanged("```{\"a\": 1}```\n\n```js {x}\n```\n"),
            ("Write ``` and {\"tool\": \"time\"}", "Write ``` and ⟦time ⟧"),
        ],
    );
}

#[test]
fn ids_of_the_model_are_reported() {
    let text = "[{\"id\": \"a\", \"name\": \"time\", \"arguments\": {}}]";
    let items = at_all_splits(&[JSON], ParserLimits::default(), text);
    let [Item::Markup(_), Item::Call { opened, body, .. }, Item::Markup(end)] = items.as_slice() else {
        panic!("{items:?}")
    };
    assert_eq!((opened.id.as_deref(), end.as_str()), (Some("a"), "]"));
    assert_eq!(body, "{\"id\": \"a\", \"name\": \"time\", \"arguments\": {}}");
}
