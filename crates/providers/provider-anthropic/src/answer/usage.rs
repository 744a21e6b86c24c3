//! Token counts of the Messages API.

use advisor_core::Usage;
use provider_http::json::count;
use serde_json::Value;

/// The counts that are read. The first is without tokens that are read from a cache or written to one.
const COUNTS: [&str; 5] = [
    "/input_tokens",
    "/cache_read_input_tokens",
    "/cache_creation_input_tokens",
    "/output_tokens",
    "/output_tokens_details/thinking_tokens",
];

/// The token counts of an answer so far. They are cumulative: the server repeats them, some or all, and a lower count
/// takes nothing back.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TokenCounts([Option<u64>; COUNTS.len()]);

impl TokenCounts {
    /// Takes the counts that `usage` reports. Returns whether it reports any.
    ///
    /// The counts of an answer leave out some steps of it, such as a compaction. The list of its steps has all.
    pub(super) fn update(&mut self, usage: &Value) -> bool {
        let steps = usage.get("iterations").and_then(Value::as_array).into_iter().flatten().map(Self::read);
        let all = steps.fold(Self::default(), |sum, step| sum.combine(step, u64::saturating_add));
        let reported = Self::read(usage).combine(all, u64::max);
        *self = self.combine(reported, u64::max);
        reported.0.iter().any(Option::is_some)
    }

    fn read(usage: &Value) -> Self {
        Self(COUNTS.map(|name| count(usage.pointer(name)?.as_i64())))
    }

    /// Combines each count with the other one. A missing one changes nothing.
    fn combine(self, other: Self, both: impl Fn(u64, u64) -> u64) -> Self {
        let Self(mut counts) = self;
        for (own, other) in counts.iter_mut().zip(other.0) {
            *own = own.iter().copied().chain(other).reduce(&both);
        }
        Self(counts)
    }

    /// Converts the counts to this project's names. Cached tokens count as input, too, as with other providers.
    pub(super) fn to_usage(self) -> Usage {
        let [input, cache_read, cache_write, output, thinking] = self.0;
        let mut usage = Usage::default();
        usage.input_tokens =
            [input, cache_read, cache_write].into_iter().flatten().reduce(u64::saturating_add);
        usage.output_tokens = output;
        usage.cached_input_tokens = cache_read;
        usage.cache_write_tokens = cache_write;
        usage.reasoning_tokens = thinking;
        usage
    }
}
