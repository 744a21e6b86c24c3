//! Checks that any split of any body of Ollama's API gives the same outcome.
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
});

/// Aggregates these pieces of an answer. Removes digits from an error's message, since they give its position.
fn outcome(pieces: impl IntoIterator<Item = Vec<u8>>) -> Value {
    let mut outcome = recording::aggregate(pieces);
    if let Some(message) = outcome.pointer_mut("/error/message") {
        let words = message.as_str().unwrap_or_default().replace(|letter: char| letter.is_ascii_digit(), "");
        *message = words.into();
    }
    outcome
}
