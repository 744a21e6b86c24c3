use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use advisor_core::{
    Block, BlockContent, BlockId, CallKey, ChatResponse, Chunk, Error, ErrorKind, FinishReason, Limit, Media,
    Message, Part, Result, ToolCall, ToolChoice, ToolEvent, ToolEventKind, ToolResult, ToolSet, TurnId,
};

use crate::cap::{ResultBounds, cap_result};
use crate::decide::ending_limit;
use crate::execution::ToolEvents;
use crate::loop_run::LoopRun;
use crate::outcome::Outcome;
use crate::{BatchCall, ToolBatch};

/// The calls of an answer that steered the loop to its tools.
pub(crate) struct ToolPlan {
    pub(crate) answer: ChatResponse,
    pub(crate) tools: ToolSet,
    pub(crate) calls: Vec<PlannedCall>,
}

/// A call of the answer as it is to be run, or the bound that keeps it from running.
pub(crate) struct PlannedCall {
    block: BlockId,
    /// Its place among the calls of the answer.
    position: u32,
    call: ToolCall,
    denied: Option<Limit>,
    /// It was started before; this is what the model reads in place of a result.
    refused: Option<&'static str>,
}

impl PlannedCall {
    fn runs(&self) -> bool {
        self.denied.is_none() && self.refused.is_none()
    }
}

impl ToolPlan {
    /// The calls of `steered`, of which some are denied. Calls that the answer does not have are left out:
    /// nobody could tell the model what came of them. So is one that `steered` has a second time.
    pub(crate) fn new(
        answer: ChatResponse,
        tools: ToolSet,
        steered: &ChatResponse,
        denied: Vec<Option<Limit>>,
    ) -> Self {
        let position = |block| (0_u32..).zip(answer.tool_calls()).find(|(_, (known, _))| *known == block);
        let mut seen = HashSet::new();
        let calls = steered.tool_calls().zip(denied).filter_map(|((block, call), denied)| {
            let (position, _) = position(block).filter(|_| seen.insert(block))?;
            Some(PlannedCall { block, position, call: call.clone(), denied, refused: None })
        });
        let calls = calls.collect();
        Self { answer, tools, calls }
    }

    /// The calls that run.
    pub(crate) fn batch(&self, turn: &TurnId) -> Vec<BatchCall> {
        self.calls.iter().filter(|planned| planned.runs()).map(|planned| self.to_run(planned, turn)).collect()
    }

    /// Keeps calls from running for which there is a reason, which the model reads.
    pub(crate) fn refuse(&mut self, turn: &TurnId, reason: impl Fn(&BatchCall) -> Option<&'static str>) {
        let refused = |planned: &PlannedCall| reason(&self.to_run(planned, turn)).filter(|_| planned.runs());
        let refused: Vec<_> = self.calls.iter().map(refused).collect();
        for (planned, refused) in self.calls.iter_mut().zip(refused) {
            planned.refused = planned.refused.or(refused);
        }
    }

    fn to_run(&self, planned: &PlannedCall, turn: &TurnId) -> BatchCall {
        BatchCall {
            call: planned.call.clone(),
            block: planned.block,
            key: CallKey::new(turn.clone(), self.answer.round(), planned.position),
            tool: self.tools.find(&planned.call.name).cloned(),
        }
    }

    /// Whether the results are the answer to the user, if all goes well.
    fn is_direct(&self) -> bool {
        let direct = |planned: &PlannedCall| {
            let tool = self.tools.find(&planned.call.name);
            planned.runs() && tool.is_some_and(|tool| tool.definition().return_direct)
        };
        !self.calls.is_empty() && self.calls.iter().all(direct)
    }

    /// One result per call of the answer as it is remembered, in its order.
    fn results(&self, ran: Vec<ToolResult>, bounds: ResultBounds) -> Vec<Message> {
        let mut ran = ran.into_iter();
        let mut by_block: HashMap<_, _> = self
            .calls
            .iter()
            .filter_map(|planned| match (&planned.denied, planned.refused) {
                (Some(limit), _) => Some((planned.block, not_started(planned, limit))),
                (_, Some(text)) => Some((planned.block, ToolResult::error(&planned.call, text))),
                _ => Some((planned.block, ran.next()?)),
            })
            .collect();
        let result = |(block, call): (BlockId, &ToolCall)| {
            let left_out = || ToolResult::error(call, "not started: the application left this call out");
            let mut result = by_block.remove(&block).unwrap_or_else(left_out);
            (result.call_id, result.name) = (call.id.clone(), call.name.clone());
            Message::tool(cap_result(result, bounds))
        };
        self.answer.tool_calls().map(result).collect()
    }

    /// What those who watch tools are told of the calls that were not given to any tool.
    fn not_run(&self, results: &[Message]) -> Vec<Chunk> {
        let ran = |block| self.calls.iter().any(|planned| planned.block == block && planned.runs());
        finished(&self.answer, results, |block| !ran(block))
    }
}

fn not_started(planned: &PlannedCall, limit: &Limit) -> ToolResult {
    ToolResult::error(&planned.call, format!("not started: {limit} was reached"))
}

/// The events that tell how calls of an answer ended.
pub(crate) fn finished(
    answer: &ChatResponse,
    results: &[Message],
    tell: impl Fn(BlockId) -> bool,
) -> Vec<Chunk> {
    let ended = answer.tool_calls().zip(results.iter().filter_map(Message::tool_result));
    ended
        .filter(|((block, _), _)| tell(*block))
        .map(|((block, call), result)| {
            let kind = ToolEventKind::Finished(result.clone());
            Chunk::Tool(Box::new(ToolEvent::new(block, call.id.clone(), call.name.clone(), kind)))
        })
        .collect()
}

impl LoopRun {
    /// Runs the calls, records their results, and goes on or ends.
    pub(crate) async fn run_tools(&mut self, mut plan: ToolPlan, events: ToolEvents) -> Result<Outcome> {
        match self.run_and_go_on(&mut plan, events).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => Err(error.with_partial(plan.answer)),
        }
    }

    async fn run_and_go_on(&mut self, plan: &mut ToolPlan, events: ToolEvents) -> Result<Outcome> {
        if let Err(error) = self.announce_starts(plan).await {
            self.abandon(&plan.answer).await;
            return Err(error);
        }
        let told = events.are_shown();
        let (ran, broken) = self.execute(plan, events).await;
        let results = plan.results(ran, self.config.limits.of_result());
        self.record_results(&plan.answer, &results).await?;
        if let Some(error) = broken {
            return Err(error);
        }
        let not_run = if told { plan.not_run(&results) } else { Vec::new() };
        Ok(self.go_on(plan, &results).await?.led_by(not_run))
    }

    /// A result for each call that runs, and what went wrong with the machinery.
    async fn execute(&mut self, plan: &ToolPlan, events: ToolEvents) -> (Vec<ToolResult>, Option<Error>) {
        let batch = plan.batch(self.request.turn.id());
        let wanted: Vec<_> = batch.iter().map(|call| call.call.clone()).collect();
        wanted.iter().for_each(|call| self.counts.note_call(call));
        let turn = Arc::clone(&self.request.turn);
        let execution = Arc::clone(&self.config.execution);
        let ran = execution.execute(ToolBatch::new(batch, turn, events, self.deadline)).await;
        match ran.and_then(|results| one_per_call(&wanted, results)) {
            Ok(ran) => (ran, None),
            Err(error) => {
                let text = "stopped: the machinery that runs tools failed; the outcome is unknown";
                (wanted.iter().map(|call| ToolResult::error(call, text)).collect(), Some(error))
            }
        }
    }

    async fn go_on(&mut self, plan: &ToolPlan, results: &[Message]) -> Result<Outcome> {
        if plan.is_direct() && results.iter().filter_map(Message::tool_result).all(|result| !result.is_error)
        {
            let blocks = results.iter().filter_map(Message::tool_result).flat_map(direct_blocks).collect();
            return self.end_with_closing(blocks, FinishReason::ReturnDirect).await;
        }
        let denied = plan.calls.iter().filter_map(|planned| planned.denied.as_ref());
        if let Some(limit) = ending_limit(denied, &self.config.limits).or_else(|| self.time_is_over()) {
            return self.end_at_limit(limit).await;
        }
        self.prepare_next(&plan.answer, results).await?;
        Ok(Outcome::Again(Vec::new()))
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
        self.inject(added, self.counts.rounds).await
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

/// A result as part of the answer to the user: one text block, and its media. One without either is said to be done,
/// since an answer that says nothing is none.
fn direct_blocks(result: &ToolResult) -> Vec<Block> {
    let media = |part: &Part| -> Option<Media> {
        match part {
            Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
                Some(media.clone())
            }
            _ => None,
        }
    };
    let media: Vec<_> = result.parts.iter().filter_map(media).collect();
    let text = match result.text() {
        text if !text.trim().is_empty() => Some(text),
        _ if media.is_empty() => Some(String::from("Done.")),
        _ => None,
    };
    let media = media.into_iter().map(|media| Block::new(BlockContent::Media(media)));
    text.map(Block::text).into_iter().chain(media).collect()
}
