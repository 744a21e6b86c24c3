//! Recorded bodies: aggregates them without a network.

use advisor_core::AggregatorSettings;
use bytes::Bytes;
use provider_http::recording;
/// Frames payloads of the Responses API, which has no end marker: a recording that was cut stays cut.
pub use provider_http::recording::frame_json_lines as frame_responses_json_lines;
use serde_json::Value;

use crate::answer::ChatCompletions;
use crate::profile::ThinkTags;
use crate::responses::{self, answer::Responses};
use crate::wire::FORMAT;

/// Aggregates a recorded Chat Completions body, given in pieces as from the network, and returns the outcome as
/// JSON.
///
/// The fields are `text`, `reasoning`, `refusal`, `tool_calls` (each `id`, `name`, `arguments` as
/// written), `finish_reason` as the provider wrote it, `usage` (or `null`) and `error`. If the answer
/// completed, `error` is `null`. Otherwise it has `kind` and `message`, and the other fields hold the partial
/// answer.
///
/// ```
/// let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// let outcome = provider_openai::recording::aggregate([body]);
/// assert_eq!(outcome["text"], "Hi");
/// assert_eq!(outcome["finish_reason"], "stop");
/// assert!(outcome["error"].is_null());
///
/// let failed = body.replace("[DONE]", r#"{"error":{"message":"late"}}"#);
/// let outcome = provider_openai::recording::aggregate([failed]);
/// assert_eq!((&outcome["finish_reason"], &outcome["error"]["kind"]), (&"stop".into(), &"provider".into()));
/// ```
#[must_use]
pub fn aggregate<B: Into<Bytes>>(pieces: impl IntoIterator<Item = B>) -> Value {
    let format = ChatCompletions::new(ThinkTags::AsText, FORMAT.into());
    recording::aggregate(format, AggregatorSettings::default(), pieces)
}

/// Aggregates a recorded body of the Responses API, and returns the outcome as [`aggregate`] does.
///
/// The finish reason is the status of the answer, or the reason why it is incomplete.
///
/// ```
/// let body = r#"data: {"type":"response.output_text.delta","output_index":0,"delta":"Hi"}
///
/// data: {"type":"response.completed","response":{"status":"completed"}}
///
/// "#;
/// let outcome = provider_openai::recording::aggregate_responses([body]);
/// assert_eq!((&outcome["text"], &outcome["finish_reason"]), (&"Hi".into(), &"completed".into()));
/// assert!(outcome["error"].is_null());
/// ```
#[must_use]
pub fn aggregate_responses<B: Into<Bytes>>(pieces: impl IntoIterator<Item = B>) -> Value {
    recording::aggregate(Responses::new(responses::wire::FORMAT), AggregatorSettings::default(), pieces)
}

/// Frames payloads of Chat Completions, one per line, as server-sent events with the end marker. So a recording
/// without framing can be read.
///
/// ```
/// use provider_openai::recording::frame_json_lines;
///
/// assert_eq!(frame_json_lines(b"{}\n\n{}\n"), b"data: {}\n\ndata: {}\n\ndata: [DONE]\n\n");
/// ```
#[must_use]
pub fn frame_json_lines(lines: &[u8]) -> Vec<u8> {
    [recording::frame_json_lines(lines), b"data: [DONE]\n\n".to_vec()].concat()
}
