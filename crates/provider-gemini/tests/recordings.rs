//! Tests that streams of real servers give the expected outcome, for any split of their bytes.

#![allow(clippy::expect_used, clippy::panic, reason = "a failing helper is a failing test")]

use advisor_testkit::recordings::{self, Recording};
use advisor_testkit::split;
use bytes::Bytes;
use provider_gemini::recording;
use serde_json::Value;

const API: &str = "gemini";
/// The seed of the first of each recording's random splits.
const SEED: u64 = 20_260_101;

fn aggregate(recording: &Recording, pieces: &[&[u8]]) -> Value {
    recording::aggregate(pieces.iter().map(|piece| Bytes::copy_from_slice(piece)), recording.choices)
}

#[test]
fn every_recording_gives_what_is_expected() {
    let recordings = recordings::all(API);
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
    for recording in &recordings::all(API) {
        let whole = aggregate(recording, &[&recording.body]);
        let bytes: Vec<&[u8]> = recording.body.chunks(1).collect();
        assert_eq!(aggregate(recording, &bytes), whole, "{}", recording.name);
    }
}

#[test]
fn law_s5_every_recording_gives_the_same_at_random_splits() {
    for recording in &recordings::all(API) {
        let whole = aggregate(recording, &[&recording.body]);
        for split in split::random_splits(&recording.body, SEED, 20) {
            let split_outcome = aggregate(recording, &split.pieces);
            assert_eq!(split_outcome, whole, "{} split with seed {}", recording.name, split.seed);
        }
    }
}

/// The events of a stream as one JSON array, as the server sends it if it is not asked for server-sent events.
#[test]
fn every_stream_gives_the_same_as_an_array() {
    for recording in &recordings::all(API) {
        let Ok(body) = str::from_utf8(&recording.body) else { continue };
        let events: Vec<&str> = body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        if events.is_empty() {
            continue;
        }
        let array = format!("[{}\n]", events.join("\n,\r\n"));
        let outcome = recording::aggregate([Bytes::from(array)], recording.choices);
        assert_eq!(outcome, aggregate(recording, &[&recording.body]), "{}", recording.name);
    }
}
