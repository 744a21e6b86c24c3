//! Recorded bodies: aggregates them without a network.

use advisor_core::AggregatorSettings;
use bytes::Bytes;
use serde_json::Value;

use crate::answer::OllamaChat;

/// Aggregates a recorded body of `/api/chat`, given in pieces as from the network, and returns the outcome as JSON.
///
/// The form is that of [`provider_http::recording::aggregate`].
///
/// ```
/// let body = concat!(
///     r#"{"message":{"role":"assistant","content":"Hi"},"done":false}"#, "\n",
///     r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}"#, "\n",
/// );
/// let outcome = provider_ollama::recording::aggregate([body]);
/// assert_eq!((&outcome["text"], &outcome["finish_reason"]), (&"Hi".into(), &"stop".into()));
/// ```
#[must_use]
pub fn aggregate<B: Into<Bytes>>(pieces: impl IntoIterator<Item = B>) -> Value {
    provider_http::recording::aggregate(OllamaChat::default(), AggregatorSettings::default(), pieces)
}
