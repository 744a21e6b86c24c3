//! Token counts, under the names that servers give them.

use advisor_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::loose::{Number, object};

/// What a server reports about tokens.
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

/// Groq's own corner of an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct XGroq<'a> {
    #[serde(deserialize_with = "object")]
    pub(crate) usage: Option<TokenCounts>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
}

/// One of the numbers in [`TokenCounts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountOf {
    Prompt,
    Completion,
    Total,
    Cached,
    CacheWritten,
    Reasoning,
}

/// The number that stands there in what a server reports about tokens; `None` if no number does that a stream counts up.
pub(crate) fn count_named(path: &[&str]) -> Option<CountOf> {
    Some(match path {
        ["prompt_tokens"] => CountOf::Prompt,
        ["completion_tokens"] => CountOf::Completion,
        ["total_tokens"] => CountOf::Total,
        ["prompt_tokens_details", "cached_tokens"] => CountOf::Cached,
        ["prompt_tokens_details", "cache_write_tokens"] => CountOf::CacheWritten,
        ["completion_tokens_details", "reasoning_tokens"] => CountOf::Reasoning,
        _ => return None,
    })
}

impl CountOf {
    /// How many there are.
    pub(crate) const ALL: usize = Self::Reasoning as usize + 1;
}

impl TokenCounts {
    /// Puts a number in place of the one that is there.
    pub(crate) fn set(&mut self, count: CountOf, value: i64) {
        let number = match count {
            CountOf::Prompt => &mut self.prompt_tokens,
            CountOf::Completion => &mut self.completion_tokens,
            CountOf::Total => &mut self.total_tokens,
            CountOf::Cached => &mut self.prompt_tokens_details.get_or_insert_default().cached_tokens,
            CountOf::CacheWritten => {
                &mut self.prompt_tokens_details.get_or_insert_default().cache_write_tokens
            }
            CountOf::Reasoning => {
                &mut self.completion_tokens_details.get_or_insert_default().reasoning_tokens
            }
        };
        *number = Number(Some(value));
    }

    /// The counts in this project's words; `None` if nothing is reported.
    pub(crate) fn to_usage(self) -> Option<Usage> {
        let prompt = self.prompt_tokens_details.unwrap_or_default();
        let completion = self.completion_tokens_details.unwrap_or_default();
        let first = |places: &[Number]| places.iter().find_map(|number| number.count());
        let mut usage = Usage::default();
        usage.input_tokens = self.prompt_tokens.count();
        usage.output_tokens = self.completion_tokens.count();
        usage.total_tokens = self.total_tokens.count();
        usage.cached_input_tokens = first(&[
            prompt.cached_tokens,
            self.prompt_cache_hit_tokens,
            self.cached_tokens,
            self.cache_read_input_tokens,
        ]);
        usage.cache_write_tokens = first(&[prompt.cache_write_tokens, self.cache_creation_input_tokens]);
        usage.reasoning_tokens = completion.reasoning_tokens.count();
        (usage != Usage::default()).then_some(usage)
    }
}
