//! Events that look like one before are not parsed: whatever they hold, they say what they say when they are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use provider_openai::aggregate_recording;
use serde_json::Value;

// The input is the JSON of one event a line. Its length decides how it comes.
fuzz_target!(|events: &[u8]| {
    let (choices, piece) = (1 + events.len() as u32 % 2, 1 + events.len() % 97);
    let blank_line = events.len() % 3 > 0;
    let alike = framed(events, |_| String::new(), blank_line);
    // An event with a name that no other has is parsed.
    let parsed = outcome([framed(events, |at| format!("event: parsed {at}\n"), blank_line)], choices);
    assert_eq!(outcome([alike.clone()], choices), parsed, "in one piece");
    assert_eq!(outcome(alike.chunks(piece).map(<[u8]>::to_vec), choices), parsed, "in pieces of {piece}");
});

/// The events, each behind its line, the last one with a blank line behind it or none.
fn framed(events: &[u8], line: impl Fn(usize) -> String, blank_line: bool) -> Vec<u8> {
    let events = events.split(|byte| *byte == b'\n').filter(|event| !event.is_empty()).enumerate();
    let mut framed: Vec<u8> =
        events.flat_map(|(at, event)| [line(at).as_bytes(), b"data: ", event, b"\n\n"].concat()).collect();
    framed.truncate(framed.len() - usize::from(!blank_line && !framed.is_empty()));
    framed
}

/// What becomes of these pieces of an answer. Where in the stream an error is, is left out.
fn outcome(pieces: impl IntoIterator<Item = Vec<u8>>, choices: u32) -> Value {
    let mut outcome = aggregate_recording(pieces, choices);
    if let Some(message) = outcome.pointer_mut("/error/message") {
        let words = message.as_str().unwrap_or_default().replace(|letter: char| letter.is_ascii_digit(), "");
        *message = words.into();
    }
    outcome
}
