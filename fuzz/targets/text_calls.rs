//! Checks that any split of any text gives the same calls and segments, and that no character is lost.
//!
//! The input is three digits (format, 5 and above for all; small bounds; seed of the split), then the text.
#![no_main]

use advisor_core::{Delta, ToolCallDelta, ToolDefinition};
use advisor_fuzz::{Script, Segments};
use advisor_testkit::split::random_splits;
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use text_tool_calls::segments::SegmentHandler;
use text_tool_calls::{
    ParserError, ParserEvent, ParserLimits, TextCallParser, TextFormat, TextTools, ToolCallFormat,
};

fuzz_target!(|script: &[u8]| {
    let mut script = Script::new(script);
    let format = script.number();
    let formats = TextFormat::ALL.get(format).map_or(&TextFormat::ALL[..], std::slice::from_ref);
    let mut limits = ParserLimits::default();
    (limits.undecided, limits.call) = script.pick(&[(8192, 1 << 20), (24, 200)]);
    let seed = script.number() as u64;
    let text = String::from_utf8_lossy(script.rest()).into_owned();

    let tools = tools();
    let whole = Parsed::of(formats, &tools, limits, &[&text]);
    let format = formats.first().copied().unwrap_or(TextFormat::Xml);
    let segments = |pieces: &[&str]| {
        let handler = SegmentHandler::new(ToolCallFormat::Text(format), &tools);
        Segments::of(handler, pieces.iter().map(|piece| Delta::text(*piece)))
    };
    let in_text = segments(&[&text]);
    // A fragment `{}` is dropped if other arguments follow it, so there the pieces count.
    let arguments = |pieces: &[&str]| (!text.starts_with("{}")).then(|| arguments(&tools, pieces));
    let in_arguments = arguments(&[&text]);
    let letters: Vec<&str> = text.split("").collect();
    let split = random_splits(text.as_bytes(), seed, 1).next();
    for pieces in split.map(|split| at_characters(&text, &split.pieces)).into_iter().chain([letters]) {
        assert_eq!(Parsed::of(formats, &tools, limits, &pieces), whole, "{} pieces", pieces.len());
        assert_eq!(segments(&pieces), in_text, "{} pieces", pieces.len());
        assert_eq!(arguments(&pieces), in_arguments, "{} pieces", pieces.len());
    }
});

fn tools() -> TextTools {
    let plan = json!({"type": "object", "properties": {
        "a": {"type": "string"}, "n": {"type": "integer"}, "l": {"type": "array", "items": {"type": "integer"}},
        "o": {"type": "object", "properties": {"a": {"type": "string"}}},
    }});
    TextTools::new(&["f", "write_file", "run_bash"].map(|name| ToolDefinition::new(name, "", plan.clone())))
}

/// Cuts a text near these pieces of its bytes.
fn at_characters<'a>(text: &'a str, pieces: &[&[u8]]) -> Vec<&'a str> {
    let (mut cut, mut from, mut end) = (Vec::new(), 0, 0);
    for piece in pieces {
        end += piece.len();
        let to = text.floor_char_boundary(end);
        cut.push(&text[from..to]);
        from = to;
    }
    cut
}

/// A call: its name, its id, its text, its arguments and whether it is complete.
type Call = (String, Option<String>, String, String, Option<bool>);

/// The result of a parser, independent of the pieces.
#[derive(Debug, PartialEq)]
struct Parsed {
    text: String,
    calls: Vec<Call>,
    error: Option<ParserError>,
}

impl Parsed {
    fn of(formats: &[TextFormat], tools: &TextTools, limits: ParserLimits, pieces: &[&str]) -> Self {
        let mut parser = TextCallParser::new(formats.iter().copied(), tools, limits);
        let mut events = Vec::new();
        let mut result = Ok(());
        for piece in pieces {
            result = result.and_then(|()| parser.push(piece, &mut events));
        }
        result = result.and_then(|()| parser.finish(&mut events));
        let mut parsed = Self { text: String::new(), calls: Vec::new(), error: result.err() };
        let whole: String = events.iter().map(|event| parsed.take(event)).collect();
        match parsed.error {
            // How far the text was read before the error depends on the pieces.
            Some(_) => (parsed.text, parsed.calls) = Default::default(),
            None => assert_eq!(whole, pieces.concat(), "all of the text is in the events, in order"),
        }
        parsed
    }

    /// Takes an event. Returns its text.
    fn take<'a>(&mut self, event: &'a ParserEvent) -> &'a str {
        let open = self.calls.last_mut().filter(|call| call.4.is_none());
        match (event, open) {
            (ParserEvent::Opened(call), None) => {
                let id = call.id.as_ref().map(ToString::to_string);
                assert!(!call.name.is_empty(), "a call has a name");
                self.calls.push((call.name.to_string(), id, String::new(), String::new(), None));
                ""
            }
            (ParserEvent::Text(text), None) => {
                self.text.push_str(text);
                text
            }
            (ParserEvent::Markup(text), None) => text,
            (ParserEvent::Markup(text) | ParserEvent::Body(text), Some(call)) => {
                call.2.push_str(text);
                text
            }
            (ParserEvent::Arguments(text), Some(call)) => {
                call.3.push_str(text);
                ""
            }
            (ParserEvent::Closed { complete }, Some(call)) => {
                call.4 = Some(*complete);
                ""
            }
            (event, open) => panic!("{event:?} with {open:?}"),
        }
    }
}

/// Returns the segments of a call whose arguments come in these pieces. One of them is decoded while it comes.
fn arguments(tools: &TextTools, pieces: &[&str]) -> Segments {
    let start = Delta::tool_call(ToolCallDelta::start(0, "c", "write_file"));
    let pieces = pieces.iter().map(|piece| Delta::tool_call(ToolCallDelta::arguments(0, *piece)));
    Segments::of(SegmentHandler::new(ToolCallFormat::Api, tools), [start].into_iter().chain(pieces))
}
