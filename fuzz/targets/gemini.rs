//! Checks that an answer of Gemini's API is the same in any split and in each framing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use provider_gemini::recording;
use serde_json::Value;

// The input is the JSON of one event a line. Its length selects the pieces.
fuzz_target!(|events: &[u8]| {
    let piece = 1 + events.len() % 97;
    let events: Vec<&[u8]> = events.split(|byte| *byte == b'\n').filter(|event| !event.is_empty()).collect();
    let sse = framed(&events, "\r\n");
    let whole = outcome([sse.clone()]);
    assert_eq!(outcome(sse.chunks(piece).map(<[u8]>::to_vec)), whole, "in pieces of {piece}");
    assert_eq!(outcome([framed(&events, "\n")]), whole, "with other line ends");
    // An array of other values is no answer, and an end marker in it ends nothing.
    if whole["error"].is_null() && events.iter().all(|event| is_part(event)) {
        let array = [b"[", events.join(&b"\n,"[..]).as_slice(), b"]"].concat();
        assert_eq!(outcome([array]), whole, "as an array");
    }
});

/// Checks whether an event is a part of an answer, in any framing.
fn is_part(event: &[u8]) -> bool {
    let fields = ["candidates", "promptFeedback", "usageMetadata"];
    let value: Value = serde_json::from_slice(event).unwrap_or_default();
    fields.iter().any(|field| !value[*field].is_null()) && !event.contains(&b'\r')
}

/// Frames the events as server-sent events.
fn framed(events: &[&[u8]], end: &str) -> Vec<u8> {
    let end = end.repeat(2).into_bytes();
    events.iter().flat_map(|event| [b"data: ".as_slice(), event, &end].concat()).collect()
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
