//! Checks that events which match a template yield the same outcome as when they are parsed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use provider_openai::recording;
use serde_json::Value;

// The input is the JSON of one event a line. Its length selects the pieces and the last blank line.
fuzz_target!(|events: &[u8]| {
    let piece = 1 + events.len() % 97;
    let blank_line = events.len() % 3 > 0;
    let unnamed = framed(events, |_| String::new(), blank_line);
    // An event with a unique name never matches a template, so it is parsed.
    let parsed = outcome([framed(events, |at| format!("event: parsed {at}\n"), blank_line)]);
    assert_eq!(outcome([unnamed.clone()]), parsed, "in one piece");
    assert_eq!(outcome(unnamed.chunks(piece).map(<[u8]>::to_vec)), parsed, "in pieces of {piece}");
});

/// Frames the events, each after its line. The last one ends with a blank line only if `blank_line` is set.
fn framed(events: &[u8], line: impl Fn(usize) -> String, blank_line: bool) -> Vec<u8> {
    let events = events.split(|byte| *byte == b'\n').filter(|event| !event.is_empty()).enumerate();
    let mut framed: Vec<u8> =
        events.flat_map(|(at, event)| [line(at).as_bytes(), b"data: ", event, b"\n\n"].concat()).collect();
    framed.truncate(framed.len() - usize::from(!blank_line && !framed.is_empty()));
    framed
}

/// Aggregates these pieces of an answer. Removes digits from an error's message, since they give its position.
fn outcome(pieces: impl IntoIterator<Item = Vec<u8>>) -> Value {
    let mut outcome = recording::aggregate(pieces);
    if let Some(message) = outcome.pointer_mut("/error/message") {
        let words = message.as_str().unwrap_or_default().replace(|letter: char| letter.is_ascii_digit(), "");
        *message = words.into();
    }
    outcome
}
