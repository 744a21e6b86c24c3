//! Tests that streams of real servers give the expected outcome, for any split of their bytes.

use advisor_test_support::recordings::{self, Recording};
use bytes::Bytes;
use provider_ollama::recording;
use serde_json::Value;

fn recordings() -> impl Iterator<Item = Recording> {
    recordings::all("other").into_iter().filter(|recording| recording.provider == "ollama")
}

fn aggregate(_: &Recording, pieces: &[&[u8]]) -> Value {
    recording::aggregate(pieces.iter().map(|piece| Bytes::copy_from_slice(piece)))
}

#[test]
fn law_s5_every_recording_is_as_expected_at_any_split() {
    recordings::assert_expected(recordings(), aggregate);
    recordings::assert_same_byte_by_byte(recordings(), aggregate);
    recordings::assert_same_at_random_splits(recordings(), aggregate);
}

#[test]
fn events_like_the_one_before_are_read_as_others() {
    recordings::assert_same_without_repeats(recordings(), aggregate);
}
