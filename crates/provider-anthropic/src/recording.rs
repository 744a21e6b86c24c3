//! Recorded bodies: aggregates them without a network.

use advisor_core::AggregatorSettings;
use bytes::Bytes;
use provider_http::recording;
use serde_json::Value;

use crate::answer::Messages;
use crate::wire::FORMAT;

/// Aggregates a recorded body of the Messages API, given in pieces as from the network, and returns the outcome as
/// JSON. The fields are those of [`provider_http::recording::aggregate`].
///
/// ```
/// let events = [
///     r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
///     r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
///     r#"{"type":"message_stop"}"#,
/// ];
/// let body = events.map(|event| format!("data: {event}\n\n")).concat();
/// let outcome = provider_anthropic::recording::aggregate([body]);
/// assert_eq!((&outcome["text"], &outcome["finish_reason"]), (&"Hi".into(), &"end_turn".into()));
/// assert!(outcome["error"].is_null());
/// ```
#[must_use]
pub fn aggregate<B: Into<Bytes>>(pieces: impl IntoIterator<Item = B>) -> Value {
    let settings = AggregatorSettings::default();
    recording::aggregate(Messages::new(FORMAT.into(), settings.limits), settings, pieces)
}

/// Frames payloads, one per line, as server-sent events. So a recording without framing can be read, and one that was
/// cut stays cut.
///
/// ```
/// use provider_anthropic::recording::{aggregate, frame_json_lines};
///
/// let cut = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;
/// let outcome = aggregate([frame_json_lines(cut.as_bytes())]);
/// assert_eq!((&outcome["text"], &outcome["error"]["kind"]), (&"Hi".into(), &"truncated".into()));
/// ```
#[must_use]
pub fn frame_json_lines(lines: &[u8]) -> Vec<u8> {
    recording::frame_json_lines(lines)
}
