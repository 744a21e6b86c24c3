//! `KeptChunks`: the bounds of the kept chunks, and the bytes of one.

use message_aggregator::{BlockDelta, Chunk, json};

/// Bounds of the chunks that a [`SharedTurn`](crate::SharedTurn) keeps for its readers. The oldest go first, and the
/// newest one always stays.
///
/// # Example
/// ```
/// use advisor_core::KeptChunks;
///
/// let kept = KeptChunks::default().with_bytes(1 << 20);
/// assert_eq!((kept.chunks, kept.bytes), (1 << 18, 1 << 20));
/// ```
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptChunks {
    /// The number of chunks. 262,144 by default.
    pub chunks: usize,
    /// The bytes of the chunks, about as in JSON, without whole blocks and responses, which repeat them. 64 MiB by
    /// default.
    pub bytes: usize,
}

impl Default for KeptChunks {
    fn default() -> Self {
        Self { chunks: 1 << 18, bytes: 64 << 20 }
    }
}

impl KeptChunks {
    /// Sets the number of chunks.
    pub fn with_chunks(self, chunks: usize) -> Self {
        Self { chunks, ..self }
    }

    /// Sets the bytes of the chunks.
    pub fn with_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }
}

/// Returns the bytes of a chunk, about as in JSON. The frequent pieces of text are not written for it. The content of
/// whole blocks and responses is not counted: it repeats pieces, and would displace them at the end of a long answer.
pub(super) fn bytes_of(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::Delta {
            delta:
                BlockDelta::Text(text)
                | BlockDelta::Reasoning(text)
                | BlockDelta::Refusal(text)
                | BlockDelta::Arguments(text),
            ..
        } => size_of::<Chunk>().saturating_add(text.len()),
        Chunk::Closed { .. } | Chunk::RoundCompleted(_) | Chunk::Completed(_) => size_of::<Chunk>(),
        _ => json::length(chunk),
    }
}
