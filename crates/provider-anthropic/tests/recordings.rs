//! Tests that streams of real providers give the expected outcome, for any split of their bytes.

#![allow(clippy::panic, reason = "a failing helper is a failing test")]

use advisor_testkit::recordings::{self, Recording};
use advisor_testkit::split;
use bytes::Bytes;
use provider_anthropic::recording;
use serde_json::Value;

const API: &str = "anthropic-messages";
/// The seed of the first of each recording's random splits.
const SEED: u64 = 20_261_125;

fn aggregate<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Value {
    recording::aggregate(pieces.into_iter().map(Bytes::copy_from_slice))
}

fn assert_agrees(recording: &Recording, outcome: &Value) {
    let differences = recording.differences(outcome);
    assert!(differences.is_empty(), "{}: {differences:?}\n{outcome:#}", recording.name);
}

#[test]
fn every_recording_gives_what_is_expected() {
    for recording in &recordings::all(API) {
        assert_agrees(recording, &aggregate([recording.body.as_slice()]));
    }
}

#[test]
fn law_s5_recorded_messages_are_equal_byte_by_byte() {
    for recording in &recordings::all(API) {
        let outcome = aggregate(recording.body.chunks(1));
        assert_agrees(recording, &outcome);
        assert_eq!(outcome, aggregate([recording.body.as_slice()]), "{}", recording.name);
    }
}

#[test]
fn law_s5_recorded_messages_are_equal_at_random_splits() {
    for recording in &recordings::all(API) {
        let whole = aggregate([recording.body.as_slice()]);
        for split in split::random_splits(&recording.body, SEED, 20) {
            let outcome = aggregate(split.pieces);
            assert_eq!(outcome, whole, "{} split with seed {}", recording.name, split.seed);
        }
    }
}
