use advisor_core::{
    Block, ChatResponse, Chunk, Error, FinishReason, Limit, Message, Result, Step, ToolResult, TurnEnd,
};

use crate::LoopEnd;
use crate::history::{has_calls, nonempty};
use crate::loop_run::LoopRun;
use crate::outcome::Outcome;
use crate::run_tools::finished;
use crate::streaming::Filter;

/// The ways in which a turn ends.
impl LoopRun {
    /// The answer ends the turn.
    pub(crate) async fn end_with_answer(
        &mut self,
        answer: &ChatResponse,
        reason: FinishReason,
    ) -> Result<Outcome> {
        let filter = self.filter(answer.round());
        // An answer with calls was recorded before, as in a round that goes on.
        let recorded = self.transcript.last().is_some_and(|last| last.is_same(answer.message()));
        let messages: Vec<_> = nonempty(answer).filter(|_| !recorded).into_iter().collect();
        self.transcript.extend(messages.iter().cloned());
        self.record(answer.round(), Step::End(TurnEnd::Completed(reason)), messages).await?;
        let withheld = |is_call| if is_call { filter.withheld_calls() } else { filter.withheld_answer() };
        let mut chunks = blocks_where(answer, withheld);
        chunks.extend(withheld_usage(filter, answer));
        chunks.push(self.completed(answer.clone()));
        Ok(Outcome::Ended(chunks))
    }

    /// The answer ends the turn, and the caller is to answer its calls.
    pub(crate) async fn hand_out(&mut self, answer: &ChatResponse) -> Result<Outcome> {
        self.record_answer(answer).await?;
        self.end_with_answer(answer, FinishReason::ToolCalls).await
    }

    /// The turn ends without running the calls of the answer: each is answered with `text`.
    pub(crate) async fn end_unrun(
        &mut self,
        answer: &ChatResponse,
        text: &str,
        reason: FinishReason,
    ) -> Result<Outcome> {
        self.record_answer(answer).await?;
        let results = unrun(answer, text);
        if !results.is_empty() {
            self.record_results(answer, &results).await?;
        }
        let filter = self.filter(answer.round());
        let mut chunks = blocks_where(answer, |is_call| !is_call && filter.withheld_answer());
        chunks.extend(withheld_usage(filter, answer));
        chunks.extend(self.round_completed(answer));
        if filter.shows_tools() {
            chunks.extend(finished(answer, &results, |_| true));
        }
        let closing = Block::text(closing_text(&reason));
        Ok(self.end_with_closing(vec![closing], reason).await?.led_by(chunks))
    }

    pub(crate) async fn end_at_limit(&mut self, limit: Limit) -> Result<Outcome> {
        let reason = FinishReason::Limit(limit);
        self.end_with_closing(vec![Block::text(closing_text(&reason))], reason).await
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

    /// The round failed. If an answer of this turn had been read to its end by then, it becomes final.
    pub(crate) async fn break_off(&mut self, error: Error) -> Error {
        if let Some(answer) = error.partial().filter(|answer| self.request.turn.has_answer(answer.message()))
        {
            self.abandon(&answer.clone()).await;
        }
        error
    }

    /// An error ends the turn: the answer, which memory may have stored already, becomes final, and its calls are
    /// answered, as far as that is still possible.
    pub(crate) async fn abandon(&mut self, answer: &ChatResponse) {
        let is_answer = |message: &Message| message.is_same(answer.message());
        let is_final = self.transcript.iter_back().any(is_answer);
        // An empty answer is stored nowhere, nor is one that was cut off.
        if !is_final && (nonempty(answer).is_none() || answer.finish().reason == FinishReason::Interrupted) {
            return;
        }
        // What fails here is repaired when the conversation is next read; the first error is the one to tell.
        if !is_final {
            let _ = self.record_answer(answer).await;
        }
        if has_calls(answer.message()) && self.transcript.last().is_some_and(is_answer) {
            let results = unrun(answer, "not started: an error ended the turn");
            let _ = self.record_results(answer, &results).await;
        }
    }

    /// The loop ends with this error.
    pub(crate) fn failed(&mut self, error: Error) -> Error {
        self.finalize(LoopEnd::Failed(error.kind()));
        // Asking again would run the tools again.
        let error = if self.counts.calls > 0 { error.after_emission() } else { error };
        error.with_history(self.transcript.clone())
    }
}

fn withheld_usage(filter: Filter, answer: &ChatResponse) -> Option<Chunk> {
    let usage = answer.usage().filter(|_| filter.withheld_usage())?;
    Some(Chunk::Usage { round: answer.round(), usage: Box::new(*usage) })
}

/// The chunks of those blocks of an answer, calls or others, for which `shown` says yes.
fn blocks_where(answer: &ChatResponse, shown: impl Fn(bool) -> bool) -> Vec<Chunk> {
    let blocks = answer.blocks().filter(|(_, block)| shown(block.as_tool_call().is_some()));
    blocks.flat_map(|(id, block)| Chunk::of_block(id, block)).collect()
}

/// The calls of an answer that does not go on, each answered with `text`.
fn unrun(answer: &ChatResponse, text: &str) -> Vec<Message> {
    answer.tool_calls().map(|(_, call)| Message::tool(ToolResult::error(call, text))).collect()
}

/// What the user and, in the next turn, the model read at the end of a turn that the loop ended.
fn closing_text(reason: &FinishReason) -> String {
    match (reason, cut_by(reason)) {
        (FinishReason::Limit(limit), _) => format!("I stopped here: {limit} was reached."),
        (_, Some(cut)) => {
            format!("I stopped here: the answer was cut off ({cut}) before its tool calls could run.")
        }
        _ => String::from("I stopped here; my tool calls were not run."),
    }
}

/// What cut an answer off, for people.
pub(crate) fn cut_by(reason: &FinishReason) -> Option<&'static str> {
    match reason {
        FinishReason::Length => Some("length limit"),
        FinishReason::ContentFilter => Some("content filter"),
        FinishReason::Refusal => Some("refusal"),
        FinishReason::Interrupted => Some("interrupted"),
        _ => None,
    }
}
