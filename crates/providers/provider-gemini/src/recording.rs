//! Recorded bodies: aggregates them without a network.

use advisor_core::AggregatorSettings;
use bytes::Bytes;
use provider_http::recording;
pub use provider_http::recording::frame_json_lines;
use serde_json::Value;

use crate::answer::GenerateContent;
use crate::wire::FORMAT;

/// Aggregates a recorded body, given in pieces as from the network, and returns the outcome as JSON.
///
/// The body is one of `streamGenerateContent`, as server-sent events or as a JSON array, or one of `generateContent`.
///
/// The fields are `text`, `reasoning`, `refusal`, `tool_calls` (each `id`, `name`, `arguments`),
/// `finish_reason` as the provider wrote it, `usage` (or `null`) and `error`. If the answer completed, `error` is
/// `null`. Otherwise it has `kind` and `message`, and the other fields hold the partial answer.
///
/// ```
/// let event = r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#;
/// for body in [format!("data: {event}\r\n\r\n"), format!("[{event}]"), event.to_owned()] {
///     let outcome = provider_gemini::recording::aggregate([body]);
///     assert_eq!((&outcome["text"], &outcome["finish_reason"]), (&"Hi".into(), &"STOP".into()));
///     assert!(outcome["error"].is_null());
/// }
/// ```
#[must_use]
pub fn aggregate<B: Into<Bytes>>(pieces: impl IntoIterator<Item = B>) -> Value {
    recording::aggregate(GenerateContent::new(FORMAT.into()), AggregatorSettings::default(), pieces)
}
