//! Parses a text at every split, and compares the events as `Item`s, which do not depend on the split.

use advisor_core::ToolDefinition;
use serde_json::{Value, json};
use text_tool_calls::{OpenedCall, ParserEvent, ParserLimits, TextCallParser, TextFormat, TextTools};

pub(crate) fn tools() -> TextTools {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let file = |body: &str| object(json!({"path": {"type": "string"}, body: {"type": "string"}}));
    let plan = json!({
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "exact": {"type": "boolean"},
            "note": {"type": ["string", "null"]},
            "names": {"type": "array", "items": {"type": "string"}},
            "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}},
            "options": {"anyOf": [{"$ref": "#/$defs/step"}, {"type": "null"}]},
        },
        "$defs": {"step": {
            "type": "object",
            "properties": {"do": {"type": "string"}, "days": {"type": "integer"}},
        }},
    });
    let bash = object(json!({
        "command": {"type": "string"}, "cwd": {"type": "string"}, "timeout_seconds": {"type": "integer"},
    }));
    let weather = object(json!({"city": {"type": "string"}, "days": {"type": "integer"}}));
    TextTools::new(&[
        ToolDefinition::new("weather", "Tells the weather.", weather),
        ToolDefinition::new("time", "Tells the time.", json!({"type": "object"})),
        ToolDefinition::new("plan", "Makes a plan.", plan),
        ToolDefinition::new("write_file", "Writes a file.", file("content")),
        ToolDefinition::new("edit_file", "Patches a file.", file("patch")),
        ToolDefinition::new("run_bash", "Runs a command.", bash),
    ])
}

/// The events of a text in a form that does not depend on how it was cut.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Text(String),
    Markup(String),
    Call { opened: OpenedCall, raw: String, body: String, arguments: String, complete: Option<bool> },
}

pub(crate) fn items(events: &[ParserEvent]) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for event in events {
        match (items.last_mut(), event) {
            (_, ParserEvent::Opened(opened)) => items.push(Item::Call {
                opened: opened.clone(),
                raw: String::new(),
                body: String::new(),
                arguments: String::new(),
                complete: None,
            }),
            (Some(Item::Call { raw, body, arguments, complete: complete @ None, .. }), event) => {
                match event {
                    ParserEvent::Markup(text) => raw.push_str(text),
                    ParserEvent::Body(text) => {
                        raw.push_str(text);
                        body.push_str(text);
                    }
                    ParserEvent::Arguments(text) => arguments.push_str(text),
                    ParserEvent::Closed { complete: closed } => *complete = Some(*closed),
                    event => panic!("{event:?} within a call"),
                }
            }
            (Some(Item::Text(last)), ParserEvent::Text(text))
            | (Some(Item::Markup(last)), ParserEvent::Markup(text)) => last.push_str(text),
            (_, ParserEvent::Text(text)) => items.push(Item::Text(text.clone())),
            (_, ParserEvent::Markup(text)) => items.push(Item::Markup(text.clone())),
            (_, event) => panic!("{event:?} outside a call"),
        }
    }
    items
}

/// The text with each call as `⟦name arguments⟧`, a cut one as `⟦name arguments…`. Markup is left out.
pub(crate) fn shown(items: &[Item]) -> String {
    let one = |item: &Item| match item {
        Item::Text(text) => text.clone(),
        Item::Markup(_) => String::new(),
        Item::Call { opened, arguments, complete, .. } => {
            let end = if *complete == Some(true) { "⟧" } else { "…" };
            format!("⟦{} {arguments}{end}", opened.name)
        }
    };
    items.iter().map(one).collect()
}

pub(crate) fn parse(formats: &[TextFormat], limits: ParserLimits, pieces: &[&str]) -> Vec<Item> {
    let mut parser = TextCallParser::new(formats.iter().copied(), &tools(), limits);
    let mut events = Vec::new();
    for piece in pieces {
        parser.push(piece, &mut events).unwrap();
    }
    parser.finish(&mut events).unwrap();
    let items = items(&events);
    let whole: String = items
        .iter()
        .map(|item| match item {
            Item::Text(text) | Item::Markup(text) | Item::Call { raw: text, .. } => text.as_str(),
        })
        .collect();
    assert_eq!(whole, pieces.concat(), "all of the text is in the events, in order");
    items
}

/// Parses a text whole, at every split, and character by character. Returns the one result.
pub(crate) fn at_all_splits(formats: &[TextFormat], limits: ParserLimits, text: &str) -> Vec<Item> {
    let whole = parse(formats, limits, &[text]);
    for at in (1..text.len()).filter(|at| text.is_char_boundary(*at)) {
        let (left, right) = text.split_at(at);
        assert_eq!(parse(formats, limits, &[left, right]), whole, "split before {right:?}");
    }
    let letters: Vec<String> = text.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    assert_eq!(parse(formats, limits, &letters), whole, "letter by letter");
    whole
}

/// Checks examples: a text, and what is shown of it.
pub(crate) fn check(format: TextFormat, examples: &[(&str, &str)]) {
    check_with(&[format], ParserLimits::default(), examples);
}

pub(crate) fn check_with(formats: &[TextFormat], limits: ParserLimits, examples: &[(&str, &str)]) {
    for (text, expected) in examples {
        let items = at_all_splits(formats, limits, text);
        assert_eq!(shown(&items), *expected, "{text}");
    }
}
