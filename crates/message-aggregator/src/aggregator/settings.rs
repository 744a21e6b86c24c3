//! `AggregatorSettings` and `AggregatorLimits`: bounds, the eager rule, and the ids of calls.

use crate::Text;

/// Settings of a [`MessageAggregator`](crate::MessageAggregator).
#[derive(Debug, Clone)]
pub struct AggregatorSettings {
    /// The bounds.
    pub limits: AggregatorLimits,
    /// Whether a tool call ends when the next block of any kind begins. Its own block closes then if it has
    /// arguments. Correct only for providers that never interleave blocks. Default: false.
    pub eager_calls: bool,
    /// Prefix of generated ids, for calls that arrive without an id.
    pub call_id_prefix: Text,
}

impl Default for AggregatorSettings {
    fn default() -> Self {
        Self { limits: AggregatorLimits::default(), eager_calls: false, call_id_prefix: "call".into() }
    }
}

/// Bounds of one answer; beyond them aggregation fails with a typed error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AggregatorLimits {
    /// Bytes of one answer, for all data held: text, arguments, media, provider data, names and
    /// ids. Structured data counts as its JSON. Default: 64 MiB.
    pub answer_bytes: usize,
    /// Bytes of the text of one block, or of the arguments of one call. Default: 16 MiB.
    pub block_bytes: usize,
    /// Blocks of one answer. Default: 4,096; never more than 65,536.
    pub blocks: usize,
    /// Tool calls of one message. Default: 256.
    pub calls: usize,
    /// Pieces of provider data on one block. Default: 65,536.
    pub provider_data: usize,
}

impl Default for AggregatorLimits {
    fn default() -> Self {
        Self {
            answer_bytes: 64 << 20,
            block_bytes: 16 << 20,
            blocks: 4096,
            calls: 256,
            provider_data: 65_536,
        }
    }
}
