//! Events that look like one before are not parsed: whatever they hold, they say what they say when they are.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use provider_openai::aggregate_recording;
use serde_json::Value;

// The input is the JSON of one event a line.
fuzz_target!(|events: &[u8]| {
    let alike = outcome(events, "");
    // What has a name of its own is parsed.
    let parsed = outcome(events, "event: parsed\n");
    assert_eq!(alike, parsed);
});

/// What becomes of these events, each behind these lines, in one piece. Where in the stream an error is, is left out.
fn outcome(events: &[u8], lines: &str) -> Value {
    let events = events.split(|byte| *byte == b'\n').filter(|event| !event.is_empty());
    let framed = events.flat_map(|event| [lines.as_bytes(), b"data: ", event, b"\n\n"].concat());
    let mut outcome = aggregate_recording([framed.collect::<Bytes>()], 1);
    if let Some(message) = outcome.pointer_mut("/error/message") {
        let words = message.as_str().unwrap_or_default().replace(|letter: char| letter.is_ascii_digit(), "");
        *message = words.into();
    }
    outcome
}
