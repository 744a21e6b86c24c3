//! Tests that streams of real servers give the expected outcome, for any split of their bytes.

use advisor_testkit::recordings::{self, Recording};
use advisor_testkit::split;
use bytes::Bytes;
use provider_ollama::recording;
use serde_json::Value;

/// The seed of the first of each recording's random splits.
const SEED: u64 = 20_260_101;

fn recordings() -> impl Iterator<Item = Recording> {
    recordings::all("other").into_iter().filter(|recording| recording.provider == "ollama")
}

fn aggregate(pieces: &[&[u8]]) -> Value {
    recording::aggregate(pieces.iter().map(|piece| Bytes::copy_from_slice(piece)))
}

#[test]
fn law_s5_every_recording_is_as_expected_at_any_split() {
    for recording in recordings() {
        let whole = aggregate(&[&recording.body]);
        let differences = recording.differences(&whole);
        assert!(differences.is_empty(), "{}: {differences:?}\n{whole:#}", recording.name);
        let bytes: Vec<&[u8]> = recording.body.chunks(1).collect();
        assert_eq!(aggregate(&bytes), whole, "{}", recording.name);
        for split in split::random_splits(&recording.body, SEED, 20) {
            assert_eq!(aggregate(&split.pieces), whole, "{} split with seed {}", recording.name, split.seed);
        }
    }
}
