use crate::ChatResponse;

/// Why deltas do not make a response.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AggregateError {
    /// The source ended with neither a finish reason nor the protocol's end marker.
    #[error(
        "the stream ended before the answer was complete: neither a finish reason nor an end marker came"
    )]
    Truncated {
        /// What had come by then. A call that the provider had not ended is not complete.
        partial: Box<ChatResponse>,
    },
    /// The answer is larger than the bounds allow.
    #[error("the answer has more than {limit} {what}; raise the aggregator's limits if that is wanted")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// A fragment came for a block that had ended already.
    #[error(
        "a fragment came for block {block}, which had ended; the eager rule suits only sequential providers"
    )]
    BlockEnded {
        /// The place of the block in its round.
        block: u32,
    },
}
