use advisor_core::{
    Block, ChatResponse, Chunk, Error, FinishReason, Limit, Message, Result, Step, ToolResult, TurnEnd,
};

use crate::LoopEnd;
use crate::loop_run::{LoopRun, Outcome, nonempty};

/// The ways in which a turn ends.
impl LoopRun {
    /// The answer ends the turn.
    pub(crate) async fn end_with_answer(
        &mut self,
        answer: &ChatResponse,
        reason: FinishReason,
    ) -> Result<Outcome> {
        let filter = self.filter(answer.round());
        let messages: Vec<_> = nonempty(answer).into_iter().collect();
        self.transcript.extend(messages.iter().cloned());
        self.record(answer.round(), Step::End(TurnEnd::Completed(reason)), messages).await?;
        let mut chunks = Vec::new();
        for (id, block) in answer.blocks() {
            let is_call = block.as_tool_call().is_some();
            if (is_call && filter.withheld_calls()) || (!is_call && filter.withheld_answer()) {
                chunks.extend(Chunk::of_block(id, block));
            }
        }
        if filter.withheld_usage()
            && let Some(usage) = answer.usage()
        {
            chunks.push(Chunk::Usage { round: answer.round(), usage: Box::new(*usage) });
        }
        chunks.push(self.completed(answer.clone()));
        Ok(Outcome::Ended(chunks))
    }

    /// The turn ends without running the calls of the answer: each is answered with `text`.
    pub(crate) async fn end_unrun(
        &mut self,
        answer: &ChatResponse,
        text: &str,
        reason: FinishReason,
    ) -> Result<Outcome> {
        self.record_answer(answer).await?;
        let results: Vec<_> =
            answer.tool_calls().map(|(_, call)| Message::tool(ToolResult::error(call, text))).collect();
        if !results.is_empty() {
            self.record_results(answer, &results).await?;
        }
        let mut chunks = self.round_completed(answer);
        let closing = Block::text(closing_text(&reason));
        let Outcome::Ended(end) = self.end_with_closing(vec![closing], reason).await? else {
            return Ok(Outcome::Ended(chunks));
        };
        chunks.extend(end);
        Ok(Outcome::Ended(chunks))
    }

    pub(crate) async fn end_at_limit(&mut self, limit: Limit) -> Result<Outcome> {
        let reason = FinishReason::Limit(limit);
        self.end_with_closing(vec![Block::text(closing_text(&reason))], reason).await
    }

    /// The turn's time ran out while the model was answering: the round is dropped and the turn closed.
    pub(crate) async fn out_of_time(&mut self) -> Result<Outcome> {
        self.end_at_limit(self.time_limit()).await
    }

    /// The turn ends with a message of the loop's own, so that it ends with an answer like every other.
    pub(crate) async fn end_with_closing(
        &mut self,
        blocks: Vec<Block>,
        reason: FinishReason,
    ) -> Result<Outcome> {
        let round = self.request.turn.next_round();
        let closing = ChatResponse::new(round, Message::assistant_blocks(blocks), reason.clone());
        self.transcript.push(closing.message().clone());
        let messages = vec![closing.message().clone()];
        self.record(round, Step::End(TurnEnd::Completed(reason)), messages).await?;
        let mut chunks: Vec<_> =
            closing.blocks().flat_map(|(id, block)| Chunk::of_block(id, block)).collect();
        chunks.push(self.completed(closing));
        Ok(Outcome::Ended(chunks))
    }

    fn completed(&mut self, response: ChatResponse) -> Chunk {
        self.finalize(LoopEnd::Finished(response.finish().reason.clone()));
        Chunk::Completed(response.with_usage(self.usage).with_transcript(self.transcript.clone()))
    }

    /// An error ends the turn: calls that may be stored already are answered, as far as that is still possible.
    pub(crate) async fn abandon(&mut self, error: Error) -> Error {
        if let Some(answer) = error.partial() {
            let text = "not started: an error ended the turn";
            let results: Vec<_> =
                answer.tool_calls().map(|(_, call)| Message::tool(ToolResult::error(call, text))).collect();
            if !results.is_empty() {
                // What fails here is repaired when the conversation is next read; the first error is the one to tell.
                let _ = self.record(answer.round(), Step::Results, results).await;
            }
        }
        error
    }

    /// The loop ends with this error.
    pub(crate) fn failed(&mut self, error: Error) -> Error {
        self.finalize(LoopEnd::Failed(error.kind()));
        error.with_history(self.transcript.clone())
    }
}

/// What the user and, in the next turn, the model read at the end of a turn that the loop ended.
fn closing_text(reason: &FinishReason) -> String {
    match reason {
        FinishReason::Limit(limit) => format!("I stopped here: {limit} was reached."),
        reason => format!(
            "I stopped here: the answer was cut off ({}) before its tool calls could run.",
            reason_name(reason)
        ),
    }
}

pub(crate) fn reason_name(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Length => "length limit",
        FinishReason::ContentFilter => "content filter",
        FinishReason::Refusal => "refusal",
        FinishReason::Interrupted => "interrupted",
        _ => "ended by the application",
    }
}
