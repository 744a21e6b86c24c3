//! All ends of a turn: with an answer, with pending calls, at a limit, with direct results, out of time, after an error.

use std::collections::HashSet;

use advisor_core::{
    Block, BlockContent, BlockId, CallKey, ChatResponse, Chunk, ChunkFold, Error, FinishReason, Limit, Media,
    Message, Part, PendingCall, Record, Result, Step, ToolEvent, ToolResult, TurnEnd,
};

use crate::LoopEnd;
use crate::not_started::{NotStarted, closing_text};
use crate::run::LoopRun;
use crate::run::history::{has_calls, nonempty};
use crate::run::stream::Filter;
use crate::run::stream::{Next, Outcome};

/// The ways in which a turn ends.
impl LoopRun {
    /// Returns the answer with its finish reason. An answer that was given without tools, at a limit, ends with it.
    fn closed(&self, answer: &ChatResponse) -> ChatResponse {
        let mut finish = answer.finish.clone();
        match &self.closing {
            Some(limit) if !finish.reason.vetoes_calls() => {
                finish.reason = FinishReason::Limit(limit.clone());
                answer.clone().with_finish(finish)
            }
            _ => answer.clone(),
        }
    }

    /// Ends the turn with the answer. The end is recorded with the model's reason, as a memory inside the loop has stored it
    /// already.
    pub(super) async fn end_with_answer(&mut self, answer: &ChatResponse) -> Result<Outcome> {
        let reason = answer.finish.reason.clone();
        let messages: Vec<_> = nonempty(answer).into_iter().collect();
        self.record(answer.round(), Step::End(TurnEnd::Completed(reason)), messages).await?;
        let mut chunks = withheld(answer, self.filter(answer.round()), &HashSet::new());
        chunks.push(self.completed(self.closed(answer)));
        Ok(Outcome::new(chunks, Next::End))
    }

    /// Ends the turn with the recorded answer, whose calls in the blocks `open` are pending. The results of its
    /// other calls are recorded.
    pub(super) async fn end_pending(
        &mut self,
        answer: &ChatResponse,
        open: HashSet<BlockId>,
    ) -> Result<Outcome> {
        self.note_open(answer);
        let end = Step::End(TurnEnd::Completed(FinishReason::ToolCalls));
        let mut record = Record::new(answer.round(), end, Vec::new());
        record.pending = self.pending(answer, &open);
        self.request.turn.record(&record).await?;
        let mut chunks = withheld(answer, self.filter(answer.round()), &open);
        chunks.push(self.completed(answer.clone()));
        Ok(Outcome::new(chunks, Next::End))
    }

    /// Notes the places of the calls for the caller, who may run open ones in this turn. The time of the loop is not theirs.
    fn note_open(&self, answer: &ChatResponse) {
        let blocks = answer.tool_calls().map(|(block, _)| block).collect();
        self.request.turn.facts(|facts| (facts.call_blocks, facts.nested_bounds) = (blocks, None));
    }

    /// Returns those of the open calls that a person may decide about: their tools are known, and not client-side.
    fn pending(&self, answer: &ChatResponse, open: &HashSet<BlockId>) -> Vec<PendingCall> {
        let tools = self.tools_of(answer.round());
        let calls = (0_u32..).zip(answer.tool_calls()).filter(|(_, (block, _))| open.contains(block));
        let pending = calls.filter_map(|(position, (_, call))| {
            let definition = tools.find(&call.name)?.definition();
            let key = CallKey::new(self.request.turn.id().clone(), answer.round(), position);
            (!definition.client_side).then(|| PendingCall { key, definition: definition.digest().into() })
        });
        pending.collect()
    }

    /// Ends the turn with the answer that it was given when it was submitted before. The calls that wait are the caller's.
    pub(super) async fn end_answered_before(&mut self, answer: &ChatResponse) -> Result<Outcome> {
        let reason = answer.finish.reason.clone();
        let messages: Vec<_> = nonempty(answer).into_iter().collect();
        self.record(answer.round(), Step::End(TurnEnd::Completed(reason.clone())), messages).await?;
        self.note_open(answer);
        let open: HashSet<_> = answer.open_calls().map(|(block, _)| block).collect();
        let mut chunks = withheld(answer, self.filter(answer.round()), &open);
        self.finalize(LoopEnd::Finished(reason));
        chunks.push(Chunk::Completed(answer.clone()));
        Ok(Outcome::new(chunks, Next::End))
    }

    /// Ends the turn without running the calls of the answer. Each is answered with the reason.
    pub(super) async fn end_unrun(
        &mut self,
        answer: &ChatResponse,
        why: &NotStarted,
        reason: FinishReason,
    ) -> Result<Outcome> {
        self.record_answer(answer).await?;
        let unrun = self.unrun(answer, why);
        if !unrun.is_empty() {
            self.record_results(answer, &messages(&unrun)).await?;
        }
        let events = self.shown(unrun);
        let filter = self.filter(answer.round());
        match self.end_with_sentence(reason).await {
            Ok(outcome) => {
                let mut chunks = withheld(answer, filter, &HashSet::new());
                chunks.extend(self.round_completed(answer));
                chunks.extend(events);
                Ok(outcome.led_by(chunks))
            }
            Err(error) => Ok(Outcome::failed(error.or_partial(answer.clone())).led_by(events)),
        }
    }

    pub(super) async fn end_at_limit(&mut self, limit: Limit) -> Result<Outcome> {
        self.end_with_sentence(FinishReason::Limit(limit)).await
    }

    async fn end_with_sentence(&mut self, reason: FinishReason) -> Result<Outcome> {
        let text = (self.config.closing_text)(&reason);
        if text.trim().is_empty() {
            let hidden = Message::assistant(closing_text(&reason)).hidden();
            return self.end_with_closing(hidden, Message::assistant_blocks(Vec::new()), reason).await;
        }
        let closing = Message::assistant(text);
        self.end_with_closing(closing.clone(), closing, reason).await
    }

    /// Ends the turn with a message of the loop, so that the transcript ends with an answer like every other.
    /// `shown` is the response: the whole message or nothing.
    pub(super) async fn end_with_closing(
        &mut self,
        message: Message,
        shown: Message,
        reason: FinishReason,
    ) -> Result<Outcome> {
        let round = self.request.turn.next_round();
        let closing = ChatResponse::new(round, shown, reason.clone());
        self.record(round, Step::End(TurnEnd::Completed(reason)), vec![message]).await?;
        let mut chunks: Vec<_> =
            closing.blocks().flat_map(|(id, block)| Chunk::from_block(id, block)).collect();
        chunks.push(self.completed(closing));
        Ok(Outcome::new(chunks, Next::End))
    }

    fn completed(&mut self, mut response: ChatResponse) -> Chunk {
        self.finalize(LoopEnd::Finished(response.finish.reason.clone()));
        response.usage = self.usage;
        response.transcript = self.transcript();
        Chunk::Completed(response)
    }

    /// Handles a failed round. If an answer of this turn was read to its end, it becomes final. Otherwise nothing
    /// of it does, and its calls are only reported.
    pub(super) async fn break_off(&mut self, error: Error) -> Outcome {
        let Some(answer) = error.partial().cloned() else { return Outcome::failed(error) };
        if self.request.turn.has_answer(answer.message()) {
            return self.abandon(&answer, error).await;
        }
        let unrun = self.unrun(&answer, &NotStarted::failed());
        Outcome::failed(error).led_by(self.shown(unrun))
    }

    /// Ends the turn after an error, which gets the answer as its partial answer. The answer, which memory may
    /// have stored already, becomes final. Its calls are answered, as far as that is still possible.
    pub(super) async fn abandon(&mut self, answer: &ChatResponse, error: Error) -> Outcome {
        let is_answer = |message: &Message| message.is_same(answer.message());
        let is_final = self.transcript().iter().rev().any(is_answer);
        // Memory stores neither an empty answer nor one that was cut off.
        let is_stored = nonempty(answer).is_some() && answer.finish.reason != FinishReason::Interrupted;
        // If a write fails here, the next load of the conversation repairs it. The caller gets the first error.
        if !is_final && is_stored {
            let _ = self.record_answer(answer).await;
        }
        let unrun = self.unrun(answer, &NotStarted::failed());
        if has_calls(answer.message()) && self.transcript().last().is_some_and(is_answer) {
            let _ = self.record_results(answer, &messages(&unrun)).await;
        }
        Outcome::failed(error.or_partial(answer.clone())).led_by(self.shown(unrun))
    }

    /// Returns the events of an answer whose calls do not run.
    fn unrun(&self, answer: &ChatResponse, why: &NotStarted) -> Vec<ToolEvent> {
        let calls = answer.tool_calls();
        calls.map(|(block, call)| why.event(block, call)).collect()
    }

    /// Returns these events, if events are shown.
    fn shown(&self, events: Vec<ToolEvent>) -> Vec<Chunk> {
        let events = if self.shows_tools() { events } else { Vec::new() };
        events.into_iter().map(|event| Chunk::Tool(Box::new(event))).collect()
    }

    /// Ends the loop with this error.
    pub(super) fn failed(&mut self, error: Error) -> Error {
        self.finalize(LoopEnd::Failed(error.kind()));
        // A retry would run the tools again, but not the decided calls.
        let error = if self.counts.has_run() { error.mark_emitted() } else { error };
        error.or_history(self.transcript())
    }
}

/// Returns the results of calls that do not run.
fn messages(unrun: &[ToolEvent]) -> Vec<Message> {
    unrun.iter().filter_map(ToolEvent::result).cloned().map(Message::tool).collect()
}

/// Returns the chunks of an answer that were withheld while it streamed: its blocks and its usage. Of its calls,
/// only the pending ones in the blocks `open` are shown.
fn withheld(answer: &ChatResponse, filter: Filter, open: &HashSet<BlockId>) -> Vec<Chunk> {
    let is_withheld = |(id, block): &(BlockId, &Block)| match block.as_tool_call() {
        Some(_) => open.contains(id) && filter.withheld_calls(),
        None => filter.withheld_answer(),
    };
    let blocks = answer.blocks().filter(is_withheld);
    let usage = answer.usage.filter(|_| filter.withheld_usage());
    let usage = usage.map(|usage| Chunk::Usage { round: answer.round(), usage: Box::new(usage) });
    blocks.flat_map(|(id, block)| Chunk::from_block(id, block)).chain(usage).collect()
}

/// Separator before the text of each direct result but the first.
///
/// It is part of the block, so that shown deltas, the response's text and the transcript are equal.
const PARAGRAPH: &str = "\n\n";

/// Returns direct results as the answer to the user: for each result a text block, then its media.
///
/// A result without either reads "Done.", since an answer must not be empty.
pub(super) fn direct_blocks<'a>(results: impl Iterator<Item = &'a ToolResult>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut has_text = false;
    for result in results {
        let media: Vec<_> = result.parts.iter().filter_map(media).cloned().collect();
        let text = match result.text() {
            text if !text.trim().is_empty() => Some(text),
            _ if media.is_empty() => Some(String::from("Done.")),
            _ => None,
        };
        blocks.extend(text.map(|text| {
            let apart = if std::mem::replace(&mut has_text, true) { PARAGRAPH } else { "" };
            Block::text(format!("{apart}{text}"))
        }));
        blocks.extend(media.into_iter().map(|media| Block::new(BlockContent::Media(media))));
    }
    blocks
}

fn media(part: &Part) -> Option<&Media> {
    match part {
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => Some(media),
        _ => None,
    }
}

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
