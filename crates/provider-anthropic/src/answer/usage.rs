//! Token counts of the Messages API.

use advisor_core::Usage;
use serde_json::Value;

/// The largest integer below which floating point represents every integer (RFC 8259, 6).
const LARGEST_COUNT: u64 = (1 << 53) - 1;

/// The token counts of an answer so far. They are cumulative: the server repeats them, some or all, and a lower count
/// takes nothing back.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TokenCounts {
    /// Without tokens that are read from a cache or written to one.
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl TokenCounts {
    /// Takes the counts that `usage` reports. Returns whether it reports any.
    ///
    /// The counts of an answer leave out some steps of it, such as a compaction. The list of its steps has all.
    pub(super) fn update(&mut self, usage: &Value) -> bool {
        let reported = Self::read(usage);
        let steps = usage.get("iterations").and_then(Value::as_array);
        let steps = steps.into_iter().flatten().map(Self::read);
        let all = steps.fold(Self::default(), |sum, step| sum.combine(step, u64::saturating_add));
        let before = *self;
        *self = before.combine(reported, u64::max).combine(all, u64::max);
        [reported, all].iter().any(|counts| counts.places().iter().any(Option::is_some))
    }

    fn read(usage: &Value) -> Self {
        let details = usage.get("output_tokens_details");
        Self {
            input: count(usage, "input_tokens"),
            cache_read: count(usage, "cache_read_input_tokens"),
            cache_write: count(usage, "cache_creation_input_tokens"),
            output: count(usage, "output_tokens"),
            thinking: details.and_then(|details| count(details, "thinking_tokens")),
        }
    }

    fn places(self) -> [Option<u64>; 5] {
        [self.input, self.cache_read, self.cache_write, self.output, self.thinking]
    }

    /// Combines each count with the other one. A missing one changes nothing.
    fn combine(self, other: Self, both: impl Fn(u64, u64) -> u64) -> Self {
        let one = |own: Option<u64>, other| own.into_iter().chain(other).reduce(&both);
        Self {
            input: one(self.input, other.input),
            cache_read: one(self.cache_read, other.cache_read),
            cache_write: one(self.cache_write, other.cache_write),
            output: one(self.output, other.output),
            thinking: one(self.thinking, other.thinking),
        }
    }

    /// Converts the counts to this project's names. Cached tokens count as input, too, as with other providers.
    pub(super) fn to_usage(self) -> Usage {
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
