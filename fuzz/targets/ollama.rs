//! Checks that any split of any body of Ollama's API gives the same outcome, and so does the parser alone.
#![no_main]

use advisor_testkit::split::random_splits;
use libfuzzer_sys::fuzz_target;
use provider_ollama::recording;
use serde_json::Value;

fuzz_target!(|body: &[u8]| {
    let whole = outcome([body.to_vec()]);
    let one_by_one = body.chunks(1).map(<[u8]>::to_vec);
    assert_eq!(outcome(one_by_one), whole, "byte by byte");
    for split in random_splits(body, body.len() as u64, 2) {
        let pieces = split.pieces.iter().map(|piece| piece.to_vec());
        assert_eq!(outcome(pieces), whole, "split with seed {}", split.seed);
    }
    if let Some(parsed) = without_templates(body) {
        assert_eq!(outcome([parsed]), whole, "parsed");
    }
});

/// Adds a member with another name to each line, so that none matches a template. `None` unless each line is an
/// object.
fn without_templates(body: &[u8]) -> Option<Vec<u8>> {
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate();
    let marked = lines.map(|(at, line)| {
        serde_json::from_slice::<serde_json::Map<String, Value>>(line).ok()?;
        let members = line.trim_ascii_start().strip_prefix(b"{")?;
        let comma: &[u8] = if members.trim_ascii_start() == b"}" { b"" } else { b"," };
        Some([format!("{{\"parsed {at}\":0").as_bytes(), comma, members, b"\n"].concat())
    });
    marked.collect::<Option<Vec<_>>>().map(|lines| lines.concat())
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
