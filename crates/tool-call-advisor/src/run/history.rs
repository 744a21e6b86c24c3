//! The messages of the next request, the records of final messages, and the chunks of earlier rounds.

use std::collections::HashSet;

use advisor_core::{
    ChatRequest, ChatResponse, Chunk, EarlierRound, Message, MessageList, NotStartedReason, Record, Result,
    Role, Step, ToolEvent, ToolEventKind,
};

use crate::run::LoopRun;
use crate::run::stream::Filter;
use crate::run::stream::{Next, Outcome};

/// The messages that a loop started with, for a later loop in the same turn.
#[derive(Clone)]
struct BeganWith(MessageList);

/// The messages to send next, which the loop keeps, and the final ones, which the turn keeps.
impl LoopRun {
    /// Returns the messages of the turn that are final.
    pub(super) fn transcript(&self) -> MessageList {
        self.request.turn.transcript()
    }

    /// Records the messages that an advisor around the loop added since an earlier loop of this turn. They are
    /// final.
    pub(super) async fn record_added(&mut self) -> Result<()> {
        let turn = &self.request.turn;
        let earlier = turn.extensions().get::<BeganWith>();
        turn.extensions().insert(BeganWith(self.request.messages.clone()));
        let Some(BeganWith(earlier)) = earlier else { return Ok(()) };
        let transcript = self.transcript();
        let is_final = |message: &Message| transcript.iter().rev().any(|known| known.is_same(message));
        let mut added = self.request.messages.added_since(&earlier);
        added.retain(|message| !is_final(message));
        Box::pin(self.inject(added, 0)).await
    }

    /// Replaces the request by the one that a hook returned. Messages that the hook added become final.
    pub(super) async fn take_over(&mut self, request: ChatRequest, round: u32) -> Result<()> {
        let added = request.messages.added_since(&self.request.messages);
        self.request = request;
        if added.is_empty() { Ok(()) } else { Box::pin(self.inject(added, round)).await }
    }

    pub(super) async fn inject(&mut self, added: Vec<Message>, round: u32) -> Result<()> {
        let kept = kept(added);
        if kept.is_empty() {
            return Ok(());
        }
        self.record(round, Step::Injected, kept).await
    }

    /// Returns the messages to send after this answer: all of them, or those that a memory inside has not seen.
    pub(super) fn messages_after(&self, answer: &ChatResponse, results: &[Message]) -> MessageList {
        let mut messages = if self.own_history {
            let mut messages = self.request.messages.clone();
            messages.extend(nonempty(answer));
            messages
        } else {
            self.request.messages.split_system().0.into()
        };
        messages.extend(results.iter().cloned());
        messages
    }

    pub(super) async fn record_answer(&mut self, answer: &ChatResponse) -> Result<()> {
        let messages: Vec<_> = nonempty(answer).into_iter().collect();
        self.record(answer.round(), Step::Answer, messages).await
    }

    pub(super) async fn record_results(&mut self, answer: &ChatResponse, results: &[Message]) -> Result<()> {
        self.record(answer.round(), Step::Results, results.to_vec()).await
    }

    pub(super) async fn record(&self, round: u32, step: Step, messages: Vec<Message>) -> Result<()> {
        self.request.turn.record(&Record::new(round, step, messages)).await
    }
}

/// Returns those messages added by a hook that become part of the transcript. Calls and results do if they come
/// together. A hook that changes those of the turn changes the request, not the transcript.
fn kept(added: Vec<Message>) -> Vec<Message> {
    let answered: HashSet<_> =
        added.iter().filter_map(|message| Some(message.tool_result()?.call_id.clone())).collect();
    let is_whole = |message: &Message| message.tool_calls().all(|call| answered.contains(&call.id));
    let called: HashSet<_> = added
        .iter()
        .filter(|message| is_whole(message))
        .flat_map(|message| message.tool_calls().map(|call| call.id.clone()))
        .collect();
    let is_kept = |message: &Message| match message.role() {
        Role::System => false,
        _ if message.is_ephemeral() => false,
        Role::Tool => message.tool_result().is_some_and(|result| called.contains(&result.call_id)),
        _ => is_whole(message),
    };
    added.into_iter().filter(is_kept).collect()
}

/// Returns the messages with the results behind the last answer in the order of its calls.
///
/// A caller adds the results of client-side calls behind those that the loop has recorded.
pub(super) fn in_call_order(messages: MessageList) -> MessageList {
    let after = messages.iter().rev().take_while(|message| message.role() != Role::Assistant).count();
    let mut tail = messages.iter().skip(messages.len().saturating_sub(after.saturating_add(1)));
    let Some(answer) = tail.next() else { return messages };
    let mut calls: Vec<_> = answer.tool_calls().map(|call| Some(&call.id)).collect();
    let mut place = |message: &Message| {
        let id = &message.tool_result()?.call_id;
        let place = calls.iter().position(|call| *call == Some(id))?;
        calls.get_mut(place)?.take();
        Some(place)
    };
    let mut placed: Vec<_> = tail.map(|message| (place(message).unwrap_or(usize::MAX), message)).collect();
    if placed.is_sorted_by_key(|(place, _)| *place) {
        return messages;
    }
    placed.sort_by_key(|(place, _)| *place);
    let before = messages.iter().take(messages.len().saturating_sub(after));
    before.chain(placed.into_iter().map(|(_, message)| message)).cloned().collect()
}

pub(super) fn has_calls(message: &Message) -> bool {
    message.tool_calls().next().is_some()
}

/// Returns the message of the answer, unless it is empty. Empty messages are never recorded or sent.
pub(super) fn nonempty(answer: &ChatResponse) -> Option<Message> {
    Some(answer.message()).filter(|message| !message.is_empty_answer()).cloned()
}

impl LoopRun {
    /// Prepends what this run shows of the rounds that an earlier one has stored: what it would have shown of them,
    /// without usage and progress, which are not stored. A turn that fails before its model answers shows nothing.
    pub(super) fn after_earlier_rounds(&self, opened: Outcome) -> Outcome {
        if !matches!(opened.next, Next::Read(_)) {
            return opened;
        }
        let (mode, tool_events) = (self.config.streaming, self.config.tool_events);
        let filter = Filter { mode, tool_events, certain: false };
        let rounds = self.request.turn.facts(|facts| std::mem::take(&mut facts.earlier_rounds));
        opened.led_by(rounds.iter().flat_map(|round| chunks_of(round, filter)).collect())
    }
}

fn chunks_of(round: &EarlierRound, filter: Filter) -> impl Iterator<Item = Chunk> {
    let blocks = round.response.blocks().flat_map(|(id, block)| Chunk::from_block(id, block));
    let shown = blocks.chain(tool_events(round)).filter(move |chunk| filter.shows(chunk));
    let end = filter.shows_round_end().then(|| Chunk::RoundCompleted(round.response.clone()));
    let mut chunks: Vec<_> = shown.collect();
    // The tools of a round run after its end.
    let tools = chunks.iter().position(|chunk| matches!(chunk, Chunk::Tool(_))).unwrap_or(chunks.len());
    chunks.splice(tools..tools, end);
    chunks.into_iter()
}

/// Returns the events of the results. Ids need not be unique: a result belongs to the first call with its id that has none.
fn tool_events(round: &EarlierRound) -> Vec<Chunk> {
    let mut open: Vec<_> = round.response.tool_calls().collect();
    let mut events = Vec::new();
    for result in &round.results {
        let place = open.iter().position(|(_, call)| call.id == result.call_id);
        let Some((block, call)) = place.map(|place| open.remove(place)) else { continue };
        let not_started = |reason| vec![ToolEventKind::NotStarted { reason, result: result.clone() }];
        let kinds = match (result.is_denied, result.is_error) {
            (true, _) => not_started(NotStartedReason::Denied),
            // What is stored does not tell failed calls from those that never began.
            (false, true) => not_started(NotStartedReason::Other),
            (false, false) => {
                let arguments = call.arguments.clone().into();
                vec![ToolEventKind::Started { arguments }, ToolEventKind::Finished { result: result.clone() }]
            }
        };
        let event = |kind| {
            Chunk::Tool(Box::new(ToolEvent {
                block,
                call_id: call.id.clone(),
                name: call.name.clone(),
                kind,
            }))
        };
        events.extend(kinds.into_iter().map(event));
    }
    events
}
