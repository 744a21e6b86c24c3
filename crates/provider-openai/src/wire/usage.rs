//! Token counts, under the names that servers give them.

use advisor_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use provider_http::json::lenient::{Number, object};

/// The token counts that a server reports.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(crate) struct TokenCounts {
    prompt_tokens: Number,
    completion_tokens: Number,
    total_tokens: Number,
    #[serde(deserialize_with = "object")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(deserialize_with = "object")]
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek.
    prompt_cache_hit_tokens: Number,
    /// Moonshot.
    cached_tokens: Number,
    /// Gateways in front of Anthropic.
    cache_read_input_tokens: Number,
    cache_creation_input_tokens: Number,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Number,
    cache_write_tokens: Number,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Number,
}

/// Groq's extension of an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct XGroq<'a> {
    #[serde(deserialize_with = "object")]
    pub(crate) usage: Option<TokenCounts>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
}

impl TokenCounts {
    /// Converts the counts to this project's names; `None` if nothing is reported.
    ///
    /// xAI counts reasoning apart from the completion, which only its total shows. It is added here.
    pub(crate) fn to_usage(self) -> Option<Usage> {
        let prompt = self.prompt_tokens_details.unwrap_or_default();
        let completion = self.completion_tokens_details.unwrap_or_default();
        let first = |places: &[Number]| places.iter().find_map(|number| number.count());
        let mut usage = Usage::default();
        usage.input_tokens = self.prompt_tokens.count();
        usage.output_tokens = self.completion_tokens.count();
        usage.total_tokens = self.total_tokens.count();
        usage.cached_input_tokens = first(&[
            prompt.cached_tokens, self.prompt_cache_hit_tokens, self.cached_tokens,
            self.cache_read_input_tokens,
        ]);
        usage.cache_write_tokens = first(&[prompt.cache_write_tokens, self.cache_creation_input_tokens]);
        usage.reasoning_tokens = completion.reasoning_tokens.count();
        let with_reasoning = usage.output_tokens.zip(usage.reasoning_tokens);
        let with_reasoning = with_reasoning.map(|(output, reasoning)| output.saturating_add(reasoning));
        let all = with_reasoning.zip(usage.input_tokens).map(|(output, input)| input.saturating_add(output));
        if all.is_some() && all == usage.total_tokens {
            usage.output_tokens = with_reasoning;
        }
        (usage != Usage::default()).then_some(usage)
    }
}
