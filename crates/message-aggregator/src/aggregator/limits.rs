//! `AggregatorLimits`: bounds on bytes, blocks, calls and provider data, with their defaults.

/// Bounds of one answer; beyond them aggregation fails with a typed error.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AggregatorLimits {
    /// Bytes of one answer, for all data held: text, arguments, media, provider data, names and
    /// ids. Structured data counts as its JSON. Default: 64 MiB.
    pub answer_bytes: usize,
    /// Bytes of the text of one block, or of the arguments of one call. Default: 16 MiB.
    pub block_bytes: usize,
    /// Blocks of one answer. Default: 4,096; never more than [`BlockId::POSITIONS`](crate::BlockId).
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

impl AggregatorLimits {
    /// Sets the bytes of one answer.
    pub fn with_answer_bytes(self, bytes: usize) -> Self {
        Self { answer_bytes: bytes, ..self }
    }

    /// Sets the bytes of one block or call.
    pub fn with_block_bytes(self, bytes: usize) -> Self {
        Self { block_bytes: bytes, ..self }
    }

    /// Sets the blocks of one answer.
    pub fn with_blocks(self, blocks: usize) -> Self {
        Self { blocks, ..self }
    }

    /// Sets the tool calls of one message.
    pub fn with_calls(self, calls: usize) -> Self {
        Self { calls, ..self }
    }

    /// Sets the pieces of provider data on one block.
    pub fn with_provider_data(self, pieces: usize) -> Self {
        Self { provider_data: pieces, ..self }
    }
}
