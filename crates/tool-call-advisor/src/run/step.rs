use advisor_core::{Chunk, ChunkStream};

use crate::plan::ToolPlan;

/// What follows a step that the loop awaited.
pub(crate) enum Outcome {
    /// A round was opened.
    Opened(ChunkStream),
    /// Emit these chunks, then open another round.
    Again(Vec<Chunk>),
    /// Emit these chunks, then run tools.
    Tools(Vec<Chunk>, ToolPlan),
    /// Emit these chunks, of which `Completed` is the last.
    Ended(Vec<Chunk>),
}

impl Outcome {
    /// Prepends these chunks. `Opened` has no chunks and discards them.
    pub(crate) fn led_by(self, mut first: Vec<Chunk>) -> Self {
        match self {
            Self::Again(chunks) => {
                first.extend(chunks);
                Self::Again(first)
            }
            Self::Tools(chunks, plan) => {
                first.extend(chunks);
                Self::Tools(first, plan)
            }
            Self::Ended(chunks) => {
                first.extend(chunks);
                Self::Ended(first)
            }
            Self::Opened(stream) => Self::Opened(stream),
        }
    }
}
