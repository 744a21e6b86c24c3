//! `AggregatorSettings`: bounds, the eager rule, and the ids of calls.

use crate::{AggregatorLimits, Text};

/// Settings of a [`MessageAggregator`](crate::MessageAggregator).
#[must_use]
#[derive(Debug, Clone)]
#[non_exhaustive]
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

impl AggregatorSettings {
    /// Sets the bounds.
    pub fn with_limits(self, limits: AggregatorLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets whether a tool call ends when the next block begins.
    pub fn with_eager_calls(self, eager_calls: bool) -> Self {
        Self { eager_calls, ..self }
    }

    /// Sets the prefix of generated ids.
    pub fn with_call_id_prefix(self, prefix: impl Into<Text>) -> Self {
        Self { call_id_prefix: prefix.into(), ..self }
    }
}
