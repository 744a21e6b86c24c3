//! Token counts of the Messages API.

use advisor_core::Usage;
use serde_json::Value;

/// The largest integer below which floating point represents every integer (RFC 8259, 6).
const LARGEST_COUNT: u64 = (1 << 53) - 1;

/// The token counts of an answer so far. The server repeats them, some or all; the last value counts.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct TokenCounts {
    /// Without tokens that are read from a cache or written to one.
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl TokenCounts {
    /// Takes the counts that `usage` reports, which are cumulative. Returns whether it reports any.
    pub(crate) fn update(&mut self, usage: &Value) -> bool {
        let thinking =
            usage.get("output_tokens_details").and_then(|details| count(details, "thinking_tokens"));
        let places = [
            (&mut self.input, count(usage, "input_tokens")),
            (&mut self.cache_read, count(usage, "cache_read_input_tokens")),
            (&mut self.cache_write, count(usage, "cache_creation_input_tokens")),
            (&mut self.output, count(usage, "output_tokens")),
            (&mut self.thinking, thinking),
        ];
        let mut reports = false;
        for (place, count) in places {
            reports |= count.is_some();
            *place = count.or(*place);
        }
        reports
    }

    /// Converts the counts to this project's names. Cached tokens count as input, too, as with other providers.
    pub(crate) fn to_usage(self) -> Usage {
        let mut usage = Usage::default();
        let input = [self.input, self.cache_read, self.cache_write];
        usage.input_tokens = input.into_iter().flatten().reduce(u64::saturating_add);
        usage.output_tokens = self.output;
        usage.cached_input_tokens = self.cache_read;
        usage.cache_write_tokens = self.cache_write;
        usage.reasoning_tokens = self.thinking;
        usage
    }
}

/// Returns a whole number that every reader of JSON represents; `None` for any other value.
fn count(object: &Value, key: &str) -> Option<u64> {
    let number = object.get(key)?;
    number.as_u64().filter(|count| *count <= LARGEST_COUNT)
}
