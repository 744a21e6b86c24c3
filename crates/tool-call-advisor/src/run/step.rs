use advisor_core::{Chunk, ChunkStream};

use crate::plan::ToolPlan;

/// What comes after something the loop awaited.
pub(crate) enum Outcome {
    /// A round is open.
    Opened(ChunkStream),
    /// These come out, and another round is opened.
    Again(Vec<Chunk>),
    /// These come out, and tools run.
    Tools(Vec<Chunk>, ToolPlan),
    /// These come out, `Completed` at their end.
    Ended(Vec<Chunk>),
}

impl Outcome {
    /// The same, with these chunks before all others.
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
