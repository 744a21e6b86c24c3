//! Tests that streams of real providers give the expected outcome, for any split of their bytes.

use advisor_test_support::recordings::{self, Recording};
use bytes::Bytes;
use provider_anthropic::recording;
use serde_json::Value;

const API: &str = "anthropic-messages";

fn aggregate(_: &Recording, pieces: &[&[u8]]) -> Value {
    recording::aggregate(pieces.iter().map(|piece| Bytes::copy_from_slice(piece)))
}

#[test]
fn every_recording_gives_what_is_expected() {
    recordings::assert_expected(recordings::all(API), aggregate);
}

#[test]
fn law_s5_recorded_messages_are_equal_byte_by_byte() {
    recordings::assert_same_byte_by_byte(recordings::all(API), aggregate);
}

#[test]
fn events_like_the_one_before_are_read_as_others() {
    recordings::assert_same_without_repeats(recordings::all(API), aggregate);
}

#[test]
fn law_s5_recorded_messages_are_equal_at_random_splits() {
    recordings::assert_same_at_random_splits(recordings::all(API), aggregate);
}
