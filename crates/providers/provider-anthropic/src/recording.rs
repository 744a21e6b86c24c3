//! Recorded bodies: aggregates them without a network.

use advisor_core::AggregatorSettings;
use bytes::Bytes;
use provider_http::recording;
pub use provider_http::recording::frame_json_lines;
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
    recording::aggregate(Messages::new(FORMAT.into()), AggregatorSettings::default(), pieces)
}
