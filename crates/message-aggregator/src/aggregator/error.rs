//! `AggregateError`: truncated answer, exceeded bound, or fragment for a closed block.

use crate::ChatResponse;

pub(crate) type Result<T = (), E = AggregateError> = std::result::Result<T, E>;

/// Checks a bound.
#[inline]
pub(crate) fn within(what: &'static str, count: usize, limit: usize) -> Result {
    if count > limit { Err(AggregateError::TooLarge { what, limit }) } else { Ok(()) }
}

/// Reason why deltas do not form a response.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AggregateError {
    /// The source ended with neither a finish reason nor the protocol's end marker.
    #[error(
        "the stream ended before the answer was complete: neither a finish reason nor an end marker came"
    )]
    Truncated {
        /// The answer so far. A call that the provider had not ended is incomplete.
        partial: Box<ChatResponse>,
    },
    /// The answer is larger than the bounds allow.
    #[error("the answer has more than {limit} {what}; raise the aggregator's limits if that is intended")]
    TooLarge {
        /// The quantity that exceeds its bound.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// A fragment arrived for a block that had already ended.
    #[error(
        "a fragment came for block {block}, which had ended; the eager rule suits only sequential providers"
    )]
    BlockEnded {
        /// The index of the block in its round.
        block: u32,
    },
}
