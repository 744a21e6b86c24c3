//! `LoopRun::out_of_time`: ends a turn in the middle of an answer and keeps the received part.

use advisor_core::{ChunkFold, FinishReason, Result};

use crate::NotStarted;
use crate::run::LoopRun;
use crate::run::step::Outcome;

impl LoopRun {
    /// Ends the turn after its time ran out while the model was answering in `round`. The part of the answer
    /// received so far becomes final, so that the next turn contains the shown text. Its calls get error results.
    pub(super) async fn out_of_time(&mut self, mut received: ChunkFold, round: u32) -> Result<Outcome> {
        let limit = self.time_limit();
        let closed: Vec<_> = received.close_open().into_iter().filter(|chunk| self.shows(chunk)).collect();
        let Some(answer) = received.response(round, &FinishReason::Interrupted) else {
            return self.end_at_limit(limit).await;
        };
        let why = NotStarted::Limit(limit.clone());
        match self.end_unrun(&answer, &why, FinishReason::Limit(limit)).await {
            Ok(outcome) => Ok(outcome.led_by(closed)),
            Err(error) => Ok(self.abandon(&answer, error).await),
        }
    }
}
