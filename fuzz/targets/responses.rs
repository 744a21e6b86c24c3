//! Checks that any split of any body of the Responses API gives the same outcome, also without the fast path. The outcome
//! is one completion or one error.
//!
//! The input is a digit (seed of the split), then the body.
#![no_main]

use advisor_fuzz::{Script, with_comments};
use advisor_testkit::split::random_splits;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use provider_openai::recording::aggregate_responses;
use serde_json::Value;

fuzz_target!(|script: &[u8]| {
    let mut script = Script::new(script);
    let seed = script.number() as u64;
    let body = script.rest();
    let outcome = aggregate_responses([Bytes::copy_from_slice(body)]);
    assert!(outcome["error"].is_null() != outcome["error"]["kind"].is_string(), "a completion or an error");
    let one_by_one: Vec<_> = body.chunks(1).collect();
    let cuts = random_splits(body, seed, 1).map(|split| split.pieces);
    for pieces in cuts.chain([one_by_one]) {
        let pieces: Vec<Bytes> = pieces.into_iter().map(Bytes::copy_from_slice).collect();
        assert_eq!(aggregate_responses(pieces.clone()), outcome, "{} pieces", pieces.len());
    }
    if let Some(parsed) = with_comments(body) {
        assert_eq!(without_positions(aggregate_responses([parsed])), without_positions(outcome), "parsed");
    }
});

/// Removes digits from an error's message, since they give its position.
fn without_positions(mut outcome: Value) -> Value {
    if let Some(message) = outcome.pointer_mut("/error/message") {
        let words = message.as_str().unwrap_or_default().replace(|letter: char| letter.is_ascii_digit(), "");
        *message = words.into();
    }
    outcome
}
