//! The wire format of `generateContent`, as servers really send it.
//!
//! One event of a stream and a whole answer have the same form: candidates, each with parts of a content. An
//! [`Object`] reads fields one by one, so a field of an unexpected form counts as absent and costs no other field.

mod object;
#[cfg(test)]
mod tests;
mod usage;

use advisor_core::Text;
use provider_http::fast_path::Field;
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use object::{Object, text};
pub(crate) use usage::TokenCounts;

/// The format name of provider data from Google's Gemini API, and of reports that are for the user only.
pub(crate) const FORMAT: &str = "gemini";
/// The host of Google's Gemini API.
const GEMINI_HOST: &str = "generativelanguage.googleapis.com";
/// The host of Vertex AI. That of a location has a prefix such as `us-east1-`.
const VERTEX_HOST: &str = "aiplatform.googleapis.com";
/// The key of a part that signs the model's thoughts. The signature must go back on the same part (Q66).
pub(crate) const SIGNATURE: &str = "thoughtSignature";
/// The key of the number of bytes at the end of a block that were the signed part. No field of the API.
pub(crate) const SIGNED_BYTES: &str = "signedBytes";
/// The key that marks a part as a thought.
pub(crate) const THOUGHT: &str = "thought";

/// The fields that are read of an event; all others are ignored.
pub(crate) const EVENT: Field = Field::Object(&[
    ("candidates", Field::List(&Field::Object(CANDIDATE_FIELDS))),
    ("promptFeedback", Field::Read),
    ("usageMetadata", Field::Object(USAGE_FIELDS)),
    ("modelVersion", Field::Once),
    ("responseId", Field::Once),
    ("error", Field::Read),
]);

const CANDIDATE_FIELDS: &[(&str, Field)] = &[
    ("index", Field::Read),
    ("content", Field::Object(&[("parts", Field::List(&PART))])),
    ("finishReason", Field::Read),
    ("finishMessage", Field::Read),
    ("citationMetadata", Field::Read),
    ("groundingMetadata", Field::Read),
    ("urlContextMetadata", Field::Read),
];
/// Every field of a part is read, because unknown parts are kept.
const PART: Field = Field::Whole(&[("text", Field::Text), ("functionCall", CALL)]);
const CALL: Field =
    Field::Whole(&[("partialArgs", Field::List(&Field::Whole(&[("stringValue", Field::Spelled)])))]);
const USAGE_FIELDS: &[(&str, Field)] = &[
    ("promptTokenCount", Field::Counts),
    ("candidatesTokenCount", Field::Counts),
    ("thoughtsTokenCount", Field::Counts),
    ("cachedContentTokenCount", Field::Counts),
    ("toolUsePromptTokenCount", Field::Counts),
    ("totalTokenCount", Field::Counts),
];

/// Returns the format name of data from this host. A server refuses the signatures of another one, the Gemini API and
/// Vertex AI those of each other, so the name contains the host.
pub(crate) fn format_of(host: &str) -> Text {
    let host = host.to_ascii_lowercase();
    match host.as_str() {
        GEMINI_HOST => FORMAT.into(),
        _ if host.ends_with(VERTEX_HOST) => format!("{FORMAT}@{VERTEX_HOST}").into(),
        _ => format!("{FORMAT}@{host}").into(),
    }
}

/// Returns JSON without the white space between its tokens; names, numbers and their order stay as written.
///
/// A JSON array is sent with line breaks, server-sent events without. The arguments of a call are the same in both.
pub(crate) fn compact(json: &RawValue) -> String {
    let mut compact = String::with_capacity(json.get().len());
    let (mut in_string, mut escaped) = (false, false);
    for letter in json.get().chars() {
        if in_string || !letter.is_ascii_whitespace() {
            compact.push(letter);
        }
        in_string ^= letter == '"' && !escaped;
        escaped = in_string && letter == '\\' && !escaped;
    }
    compact
}

/// Returns the value of this JSON; `None` if no value can hold it, such as one that is nested too deep.
pub(crate) fn value(json: &RawValue) -> Option<Value> {
    serde_json::from_str(json.get()).ok()
}
