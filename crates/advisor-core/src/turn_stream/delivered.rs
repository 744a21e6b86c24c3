//! `Delivered`: text of the unfinished round that the caller has received.

use message_aggregator::{BlockDelta, Chunk, Text};

/// Output of the unfinished round that the caller of a turn was shown.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    round: u32,
    text: String,
    any: bool,
}

impl Delivered {
    #[inline]
    pub(super) fn note(&mut self, chunk: &Chunk) {
        self.any = true;
        match chunk {
            Chunk::Delta { block, delta: BlockDelta::Text(text) | BlockDelta::Refusal(text) } => {
                self.enter(block.round);
                self.text.push_str(text);
            }
            // The end of a round records its output; a restart voids it.
            Chunk::RoundCompleted(_) | Chunk::Completed(_) | Chunk::AttemptRestarted { .. } => {
                self.text.clear()
            }
            chunk => self.enter(chunk.round()),
        }
    }

    pub(super) fn round(&self) -> u32 {
        self.round
    }

    /// Checks whether the caller was shown anything in this turn.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    /// Takes the text of the unfinished round.
    pub(super) fn take_text(&mut self) -> Text {
        std::mem::take(&mut self.text).into()
    }

    fn enter(&mut self, round: u32) {
        if round != self.round {
            self.round = round;
            self.text.clear();
        }
    }
}
