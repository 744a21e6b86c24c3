//! Tests that streams of real providers give the expected outcome, for any split of their bytes.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing helper is a failing test"
)]

use advisor_testkit::recordings::{self, Recording};
use advisor_testkit::split;
use bytes::Bytes;
use provider_openai::recording;
use serde_json::Value;

/// The seed of the first of each recording's random splits.
const SEED: u64 = 20_260_101;

fn aggregate(recording: &Recording, pieces: &[&[u8]]) -> Value {
    let pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece));
    match recording.api.as_str() {
        "openai-responses" => recording::aggregate_responses(pieces),
        _ => recording::aggregate(pieces, recording.choices),
    }
}

/// The recordings of both APIs.
fn all() -> Vec<Recording> {
    ["openai-chat", "openai-responses"].into_iter().flat_map(recordings::all).collect()
}

fn assert_agrees(recording: &Recording, outcome: &Value) {
    let differences = recording.differences(outcome);
    assert!(differences.is_empty(), "{}: {differences:?}\n{outcome:#}", recording.name);
}

#[test]
fn every_recording_gives_what_is_expected() {
    let recordings = all();
    let mut wrong = Vec::new();
    for recording in &recordings {
        let outcome = aggregate(recording, &[&recording.body]);
        let differences = recording.differences(&outcome);
        if !differences.is_empty() {
            wrong.push(format!("{}: {differences:?}\n{outcome:#}", recording.name));
        }
    }
    println!("{}/{} agree", recordings.len() - wrong.len(), recordings.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn law_s5_every_recording_gives_the_same_byte_by_byte() {
    for recording in &all() {
        let whole = aggregate(recording, &[&recording.body]);
        let bytes: Vec<&[u8]> = recording.body.chunks(1).collect();
        assert_eq!(aggregate(recording, &bytes), whole, "{}", recording.name);
        assert_agrees(recording, &whole);
    }
}

#[test]
fn law_s5_every_recording_gives_the_same_at_random_splits() {
    for recording in &all() {
        let whole = aggregate(recording, &[&recording.body]);
        for split in split::random_splits(&recording.body, SEED, 20) {
            assert_eq!(
                aggregate(recording, &split.pieces),
                whole,
                "{} split with seed {}",
                recording.name,
                split.seed
            );
        }
    }
}
