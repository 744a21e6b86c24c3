//! Bounds of a parser: the undecided text, the length of a call, and the number of calls.

use text_tool_calls::{ParserError, ParserEvent, ParserLimits, TextCallParser, TextFormat};

use crate::parsers::common::{check_with, tools};

fn small() -> ParserLimits {
    let mut limits = ParserLimits::default();
    (limits.undecided, limits.call) = (40, 100);
    limits
}

#[test]
fn law_r1_undecided_text_beyond_its_bound_is_text() {
    let long = "x".repeat(50);
    for text in [
        format!("<tool name=\"{long}\"></tool>"),
        format!("{{\"type\": \"{long}\", \"tool\": \"time\"}}"),
        format!("[[SEG_START {{\"type\": \"text\", \"x\": \"{long}\"}}]]x[[SEG_END]]"),
        format!("<|tool_call_begin|>{long}<|tool_call_argument_begin|>"),
    ] {
        check_with(&TextFormat::ALL, small(), &[(text.as_str(), text.as_str())]);
    }
}

#[test]
fn law_r1_at_most_the_undecided_text_is_held_back() {
    for (format, text, most) in [
        (TextFormat::Xml, format!("<write_file path=\"a\">{}", "x".repeat(1000)), 20),
        (TextFormat::Xml, format!("<tool name=\"weather\"><arg name=\"city\">{}", "x ".repeat(500)), 21),
        (TextFormat::Json, format!("{{\"name\": \"Ann\", \"about\": \"{}", "x".repeat(20_000)), 8192),
        (TextFormat::Json, format!("{{\"about\": \"{}", "x".repeat(1000)), 8),
        (TextFormat::Sentinel, "[[a]] ".repeat(200), 2),
        (TextFormat::Kimi, format!("<|tool_calls_section_begin|>{}", " ".repeat(3000)), 1024),
        (TextFormat::DeepSeek, format!("<|DSML|function_calls>{}", " ".repeat(3000)), 1024),
    ] {
        let mut parser = TextCallParser::new([format], &tools(), ParserLimits::default());
        let (mut events, mut held) = (Vec::new(), 0);
        for letter in text.chars() {
            parser.push(letter.encode_utf8(&mut [0; 4]), &mut events).unwrap();
            held += letter.len_utf8();
            for event in events.drain(..) {
                if let ParserEvent::Text(text) | ParserEvent::Markup(text) | ParserEvent::Body(text) = event {
                    held -= text.len();
                }
            }
            assert!(held <= most, "{held} after {letter:?} of {format:?}");
        }
    }
}

/// The calls within the bound are read, however the text is cut; one more is an error.
#[test]
fn law_r1_one_call_too_many_is_an_error() {
    let mut limits = ParserLimits::default();
    limits.calls = 2;
    for (text, more) in [
        ("<tool name=\"time\"/><tool name=\"time\"/>", "<tool name=\"time\"/>"),
        (
            "[{\"tool\": \"time\", \"arguments\": {}}, {\"tool\": \"time\", \"arguments\": {}}",
            ", {\"tool\": \"time\"}]",
        ),
        (
            "<|tool_call_begin|>time<|tool_call_argument_begin|>{}<|tool_call_end|>\
             <|tool_call_begin|>time<|tool_call_argument_begin|>{}<|tool_call_end|>",
            "<|tool_call_begin|>time<|tool_call_argument_begin|>",
        ),
    ] {
        let whole = format!("{text}{more}");
        for pieces in [vec![whole.as_str()], whole.split("").collect()] {
            let mut parser = TextCallParser::new(TextFormat::ALL, &tools(), limits);
            let mut events = Vec::new();
            let mut results = pieces.iter().map(|piece| parser.push(piece, &mut events));
            let error = results.find_map(Result::err).unwrap();
            assert_eq!(error, ParserError::TooManyCalls { limit: 2 });
            let opened = events.iter().filter(|event| matches!(event, ParserEvent::Opened(_)));
            assert_eq!(opened.count(), 2, "{events:?}");
            assert_eq!(parser.push("x", &mut events), Err(ParserError::Ended));
        }
    }
}

#[test]
fn law_r1_too_long_call_is_an_error() {
    for text in [
        format!("<write_file path=\"a\">{}</write_file>", "x".repeat(100)),
        format!("{{\"tool\": \"time\", \"arguments\": {{\"a\": \"{}\"}}}}", "x".repeat(100)),
    ] {
        for pieces in [vec![text.as_str()], text.split("").collect()] {
            let mut parser = TextCallParser::new(TextFormat::ALL, &tools(), small());
            let mut events = Vec::new();
            let mut results = pieces.iter().map(|piece| parser.push(piece, &mut events));
            let error = results.find_map(Result::err).unwrap();
            assert_eq!(error, ParserError::CallTooLong { limit: 100 });
            assert_eq!(parser.push("x", &mut events), Err(ParserError::Ended));
            assert_eq!(parser.finish(&mut events), Err(ParserError::Ended));
        }
    }
}
