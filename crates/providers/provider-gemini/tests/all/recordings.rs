//! Tests that streams of real servers give the expected outcome, for any split of their bytes.

use advisor_test_support::recordings::{self, Recording};
use bytes::Bytes;
use provider_gemini::recording;
use serde_json::Value;

const API: &str = "gemini";

fn aggregate(_recording: &Recording, pieces: &[&[u8]]) -> Value {
    recording::aggregate(pieces.iter().map(|piece| Bytes::copy_from_slice(piece)))
}

#[test]
fn every_recording_gives_what_is_expected() {
    recordings::assert_expected(recordings::all(API), aggregate);
}

#[test]
fn law_s5_every_recording_gives_the_same_byte_by_byte() {
    recordings::assert_same_byte_by_byte(recordings::all(API), aggregate);
}

#[test]
fn events_like_the_one_before_are_read_as_others() {
    recordings::assert_same_without_repeats(recordings::all(API), aggregate);
}

#[test]
fn law_s5_every_recording_gives_the_same_at_random_splits() {
    recordings::assert_same_at_random_splits(recordings::all(API), aggregate);
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
        let outcome = recording::aggregate([Bytes::from(array)]);
        assert_eq!(outcome, aggregate(recording, &[&recording.body]), "{}", recording.name);
    }
}
