use std::collections::VecDeque;
use std::sync::Arc;

use advisor_core::{
    Block, BlockContent, CallKey, ChatResponse, Error, ErrorKind, FinishReason, Limit, Media, Message, Part,
    Result, ToolCall, ToolChoice, ToolResult, ToolSet,
};

use crate::cap::cap_result;
use crate::decide::ending_limit;
use crate::execution::ToolEvents;
use crate::loop_run::{LoopRun, Outcome};
use crate::{BatchCall, ToolBatch};

/// The calls of an answer and which of them are denied.
pub(crate) struct ToolPlan {
    pub(crate) answer: ChatResponse,
    pub(crate) tools: ToolSet,
    /// The calls to run, after whatever steered the loop.
    pub(crate) steered: ChatResponse,
    pub(crate) denied: Vec<Option<Limit>>,
}

impl LoopRun {
    /// Runs the calls, records their results, and goes on or ends.
    pub(crate) async fn run_tools(&mut self, plan: ToolPlan, events: ToolEvents) -> Result<Outcome> {
        let answer = plan.answer.clone();
        match self.run_and_go_on(plan, events).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => Err(error.with_partial(answer)),
        }
    }

    async fn run_and_go_on(&mut self, plan: ToolPlan, events: ToolEvents) -> Result<Outcome> {
        let ToolPlan { answer, tools, steered, denied } = plan;
        let batch = self.batch(&steered, &tools, &denied);
        let wanted: Vec<_> = batch.iter().map(|call| call.call.clone()).collect();
        wanted.iter().for_each(|call| self.counts.note_call(call));
        let direct = !batch.is_empty()
            && denied.iter().all(Option::is_none)
            && batch
                .iter()
                .all(|call| call.tool.as_ref().is_some_and(|tool| tool.definition().return_direct));
        let turn = Arc::clone(&self.request.turn);
        let execution = Arc::clone(&self.config.execution);
        let ran = execution.execute(ToolBatch::new(batch, turn, events, self.deadline)).await;
        let ran = ran.and_then(|results| one_per_call(&wanted, results));
        let (ran, broken) = match ran {
            Ok(ran) => (ran, None),
            Err(error) => {
                let text = "stopped: the machinery that runs tools failed; the outcome is unknown";
                (wanted.iter().map(|call| ToolResult::error(call, text)).collect(), Some(error))
            }
        };
        let results = self.results(&answer, &steered, &denied, ran);
        self.record_results(&answer, &results).await?;
        if let Some(error) = broken {
            return Err(error);
        }
        let limit = ending_limit(&denied, &self.config.limits).or_else(|| self.time_is_over());
        if direct && results.iter().all(|result| result.tool_result().is_some_and(|result| !result.is_error))
        {
            let blocks = results.iter().filter_map(Message::tool_result).flat_map(direct_blocks).collect();
            return self.end_with_closing(blocks, FinishReason::ReturnDirect).await;
        }
        if let Some(limit) = limit {
            return self.end_at_limit(limit).await;
        }
        self.prepare_next(&answer, &results).await?;
        Ok(Outcome::Again(Vec::new()))
    }

    fn batch(&self, steered: &ChatResponse, tools: &ToolSet, denied: &[Option<Limit>]) -> Vec<BatchCall> {
        let turn = self.request.turn.id();
        let admitted =
            steered.tool_calls().zip((0_u32..).zip(denied)).filter(|(_, (_, denied))| denied.is_none());
        admitted
            .map(|((block, call), (position, _))| BatchCall {
                call: call.clone(),
                block,
                key: CallKey::new(turn.clone(), steered.round(), position),
                tool: tools.find(&call.name).cloned(),
            })
            .collect()
    }

    /// One result per call of the answer as it is remembered, in its order.
    fn results(
        &self,
        answer: &ChatResponse,
        steered: &ChatResponse,
        denied: &[Option<Limit>],
        ran: Vec<ToolResult>,
    ) -> Vec<Message> {
        let mut ran: VecDeque<_> = ran.into();
        let mut by_call = Vec::new();
        for ((block, call), denied) in steered.tool_calls().zip(denied) {
            let result = match denied {
                Some(limit) => Some(ToolResult::error(call, format!("not started: {limit} was reached"))),
                None => ran.pop_front(),
            };
            by_call.push((block, result));
        }
        answer
            .tool_calls()
            .map(|(block, call)| {
                let known = by_call.iter_mut().find(|(known, _)| *known == block);
                let mut result = known.and_then(|(_, result)| result.take()).unwrap_or_else(|| {
                    ToolResult::error(call, "not started: the application left this call out")
                });
                result.call_id = call.id.clone();
                Message::tool(cap_result(result, self.config.limits.result_bytes))
            })
            .collect()
    }

    async fn prepare_next(&mut self, answer: &ChatResponse, results: &[Message]) -> Result<()> {
        let proposed = self.messages_after(answer, results);
        let hooks = Arc::clone(&self.config.hooks);
        let next = hooks.next_messages(proposed.clone(), results).await?;
        let added = next.added_since(&proposed);
        self.request.messages = next;
        // A forced call is asked for once; asked for again and again, the turn would never end.
        if matches!(self.request.options.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_))) {
            self.request.options.tool_choice = Some(ToolChoice::Auto);
        }
        self.inject(added).await
    }
}

fn one_per_call(calls: &[ToolCall], results: Vec<ToolResult>) -> Result<Vec<ToolResult>> {
    let matches = calls.len() == results.len()
        && calls.iter().zip(&results).all(|(call, result)| call.id == result.call_id);
    if !matches {
        return Err(Error::new(
            ErrorKind::Tool,
            "the tool execution gave other results than one per call, in call order",
        ));
    }
    Ok(results)
}

/// A result as part of the answer to the user: one text block, and its media.
fn direct_blocks(result: &ToolResult) -> Vec<Block> {
    let media = |part: &Part| -> Option<Media> {
        match part {
            Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
                Some(media.clone())
            }
            _ => None,
        }
    };
    let media = result.parts.iter().filter_map(media).map(|media| Block::new(BlockContent::Media(media)));
    std::iter::once(Block::text(result.text())).chain(media).collect()
}
