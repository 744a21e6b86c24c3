//! Tests that streams of real providers give the expected outcome, for any split of their bytes.

use advisor_test_support::recordings::{self, Recording};
use bytes::Bytes;
use provider_openai::recording;
use serde_json::Value;

fn aggregate(recording: &Recording, pieces: &[&[u8]]) -> Value {
    let pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece));
    match recording.api.as_str() {
        "openai-responses" => recording::aggregate_responses(pieces),
        _ => recording::aggregate(pieces),
    }
}

/// The recordings of both APIs.
fn all() -> impl Iterator<Item = Recording> {
    ["openai-chat", "openai-responses"].into_iter().flat_map(recordings::all)
}

#[test]
fn every_recording_gives_what_is_expected() {
    recordings::assert_expected(all(), aggregate);
}

#[test]
fn law_s5_every_recording_gives_the_same_byte_by_byte() {
    recordings::assert_same_byte_by_byte(all(), aggregate);
}

#[test]
fn events_like_the_one_before_are_read_as_others() {
    recordings::assert_same_without_repeats(all(), aggregate);
}

#[test]
fn law_s5_every_recording_gives_the_same_at_random_splits() {
    recordings::assert_same_at_random_splits(all(), aggregate);
}

/// An answer of an image alone is no empty one.
#[test]
fn media_are_listed() {
    let body = r#"{"choices":[{"message":{"images":[{"image_url":{"url":"data:image/png;base64,AQID"}},
        {"image_url":{"url":"https://example.org/a"}}]},"finish_reason":"stop"}]}"#;
    let expected = serde_json::json!([
        {"mime": "image/png", "bytes": 3},
        {"mime": "image/*", "url": "https://example.org/a"},
    ]);
    assert_eq!(recording::aggregate([body])["media"], expected);
    let text = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    assert_eq!(recording::aggregate([text]).get("media"), None);
}
