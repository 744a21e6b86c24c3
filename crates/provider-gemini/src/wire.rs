//! The wire format of `generateContent`, as servers really send it.
//!
//! One event of a stream and a whole answer have the same form: candidates, each with parts of a content. An
//! [`Object`] reads fields one by one, so a field of an unexpected form counts as absent and costs no other field.

mod object;

use advisor_core::{Text, Usage};
use provider_http::fast_path::Field;
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use object::{Object, text};

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
/// The largest integer below which floating point represents every integer (RFC 8259, 6).
const LARGEST_COUNT: u64 = (1 << 53) - 1;

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
const PART: Field = Field::Whole(&[("text", Field::Text), ("functionCall", Field::Read)]);
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

/// Returns the value of this JSON; `None` if no value can hold it, such as one that is nested too deep.
pub(crate) fn value(json: &RawValue) -> Option<Value> {
    serde_json::from_str(json.get()).ok()
}

/// The token counts of an answer so far. Each event has those of the whole answer: a lower or missing one takes nothing
/// back.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct TokenCounts {
    prompt: Option<u64>,
    tool_results: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
    total: Option<u64>,
    cached: Option<u64>,
}

impl TokenCounts {
    /// Takes the counts of `usageMetadata`, and returns all so far; `None` if there are none.
    ///
    /// Gemini counts the results of its own tools apart from the prompt, and thoughts apart from the answer. They are
    /// added here, because the input includes everything that the model read, and the output everything it wrote.
    pub(crate) fn update(&mut self, counts: &Object<'_>) -> Option<Usage> {
        for (own, name) in [
            (&mut self.prompt, "promptTokenCount"),
            (&mut self.tool_results, "toolUsePromptTokenCount"),
            (&mut self.candidates, "candidatesTokenCount"),
            (&mut self.thoughts, "thoughtsTokenCount"),
            (&mut self.total, "totalTokenCount"),
            (&mut self.cached, "cachedContentTokenCount"),
        ] {
            let number = counts.text(name).and_then(|number| number.parse().ok());
            *own = number.filter(|count| *count <= LARGEST_COUNT).max(*own);
        }
        let sum = |one: Option<u64>, other| one.into_iter().chain(other).reduce(u64::saturating_add);
        let mut usage = Usage::default();
        usage.input_tokens = sum(self.prompt, self.tool_results);
        usage.output_tokens = sum(self.candidates, self.thoughts);
        usage.total_tokens = self.total;
        usage.cached_input_tokens = self.cached;
        usage.reasoning_tokens = self.thoughts;
        (usage != Usage::default()).then_some(usage)
    }
}
