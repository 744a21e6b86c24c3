//! Token counts of the Responses API.

use advisor_core::Usage;
use provider_http::json::lenient::{Number, object};
use serde::Deserialize;

/// The token counts of an answer.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(in crate::responses) struct TokenCounts {
    input_tokens: Number,
    output_tokens: Number,
    total_tokens: Number,
    #[serde(deserialize_with = "object")]
    input_tokens_details: Option<InputDetails>,
    #[serde(deserialize_with = "object")]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Number,
    cache_write_tokens: Number,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Number,
}

impl TokenCounts {
    /// Converts the counts to this project's names; `None` if nothing is reported.
    pub(in crate::responses) fn to_usage(self) -> Option<Usage> {
        let (input, output) =
            (self.input_tokens_details.unwrap_or_default(), self.output_tokens_details.unwrap_or_default());
        let mut usage = Usage::default();
        usage.input_tokens = self.input_tokens.count();
        usage.output_tokens = self.output_tokens.count();
        usage.total_tokens = self.total_tokens.count();
        usage.cached_input_tokens = input.cached_tokens.count();
        usage.cache_write_tokens = input.cache_write_tokens.count();
        usage.reasoning_tokens = output.reasoning_tokens.count();
        (usage != Usage::default()).then_some(usage)
    }
}
