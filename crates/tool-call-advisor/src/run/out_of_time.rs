use advisor_core::{ChatResponse, Choice, ChunkFold, FinishReason, Message, Result};

use crate::NotStarted;
use crate::run::LoopRun;
use crate::run::step::Outcome;

impl LoopRun {
    /// The turn's time ran out while the model was answering in `round`. What was heard of the answer becomes
    /// final, so that the next turn knows what the user has read; its calls are answered, and the turn ends.
    pub(crate) async fn out_of_time(&mut self, mut heard: ChunkFold, round: u32) -> Result<Outcome> {
        let limit = self.time_limit();
        let closed: Vec<_> = heard.close_open().into_iter().filter(|chunk| self.shows(chunk)).collect();
        let Some(answer) = heard_answer(&heard, round) else {
            return self.end_at_limit(limit).await;
        };
        let why = NotStarted::Limit(limit.clone());
        match self.end_unrun(&answer, &why, FinishReason::Limit(limit)).await {
            Ok(outcome) => Ok(outcome.led_by(closed)),
            Err(error) => {
                self.abandon(&answer).await;
                Err(error.with_partial(answer))
            }
        }
    }
}

/// What there is of an answer that was not heard to its end, if there is anything.
fn heard_answer(heard: &ChunkFold, round: u32) -> Option<ChatResponse> {
    let (ids, blocks): (Vec<_>, Vec<_>) = heard.blocks(round).into_iter().unzip();
    if blocks.is_empty() {
        return None;
    }
    let choice = Choice::new(0, Message::assistant_blocks(blocks), ids, FinishReason::Interrupted.into());
    Some(ChatResponse::from_choices(round, vec![choice]))
}
