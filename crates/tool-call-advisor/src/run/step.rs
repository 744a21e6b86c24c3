//! `Outcome`: the chunks to emit after awaited work, and the next step: read the round, open one, run tools, end.

use advisor_core::{Chunk, ChunkStream, Error};

use crate::plan::ToolPlan;

/// The outcome of a step that the loop awaited: the chunks to emit, then the next thing to do.
pub(super) struct Outcome {
    pub(super) chunks: Vec<Chunk>,
    pub(super) next: Next,
}

pub(super) enum Next {
    /// Read the round that was opened.
    Read(ChunkStream),
    /// Open a round.
    Open,
    /// Run tools.
    RunTools(ToolPlan),
    /// End the turn. `Completed` is the last chunk.
    End,
    /// End the turn with this error.
    Fail(Error),
}

impl Outcome {
    pub(super) fn new(chunks: Vec<Chunk>, next: Next) -> Self {
        Self { chunks, next }
    }

    pub(super) fn failed(error: Error) -> Self {
        Self::new(Vec::new(), Next::Fail(error))
    }

    /// Prepends these chunks.
    pub(super) fn led_by(self, mut first: Vec<Chunk>) -> Self {
        first.extend(self.chunks);
        Self { chunks: first, ..self }
    }
}
