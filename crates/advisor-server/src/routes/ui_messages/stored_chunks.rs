//! The chunks of a stored turn, as its stream had them.

use std::cmp::Ordering;

use advisor_core::{
    Block, BlockId, ChatResponse, Chunk, FinishReason, Message, NotStartedReason, Role, Text, ToolCall,
    ToolEvent, ToolEventKind, ToolResult, TurnEnd,
};
use chat_memory_advisor::TurnMessages;

/// Returns the chunks of a stored turn that has ended, of these messages, as its stream had them.
///
/// What the store does not keep is missing: void attempts, progress of tools, and all but the text of an answer that broke
/// off.
pub(super) fn stored_chunks(turn: &TurnMessages, messages: &[&Message]) -> Vec<Chunk> {
    let answers = messages.iter().filter(|message| message.role() == Role::Assistant).count();
    let answers = u32::try_from(answers).unwrap_or(u32::MAX);
    let (reason, partial) = ending(turn.end.as_ref());
    let nothing = ChatResponse::new(1, Message::assistant_blocks(Vec::new()), FinishReason::Empty);
    let mut stored = Stored { chunks: Vec::new(), last: nothing, open: Vec::new() };
    let partial = partial.filter(|_| turn.has_added_answer);
    let partial = partial.map(|text| Message::assistant_blocks(vec![Block::text(text.as_str())]));
    let mut place = 0_u32;
    for message in messages.iter().copied().chain(&partial) {
        if message.role() == Role::Assistant {
            let round = round_of(place, answers, turn.last_round);
            stored.answer(ChatResponse::new(round, message.clone(), reason.clone()));
            place = place.saturating_add(1);
        }
        stored.result(message.tool_result());
    }
    let Stored { mut chunks, last, .. } = stored;
    chunks.push(Chunk::Completed(last.with_finish(reason)));
    chunks
}

/// Returns the finish reason of a turn, and the text that was shown of an answer that broke off.
fn ending(end: Option<&TurnEnd>) -> (FinishReason, Option<&Text>) {
    match end {
        Some(TurnEnd::Completed(reason)) => (reason.clone(), None),
        Some(TurnEnd::Failed { partial } | TurnEnd::Interrupted { partial }) => {
            (FinishReason::Interrupted, Some(partial).filter(|partial| !partial.is_empty()))
        }
        Some(TurnEnd::Refused) => (FinishReason::Interrupted, None),
        _ => (FinishReason::Stop, None),
    }
}

/// The chunks so far.
struct Stored {
    chunks: Vec<Chunk>,
    last: ChatResponse,
    /// The calls of the last answer that have no result.
    open: Vec<(BlockId, ToolCall)>,
}

impl Stored {
    fn answer(&mut self, response: ChatResponse) {
        self.chunks.extend(response.blocks().flat_map(|(id, block)| Chunk::from_block(id, block)));
        self.open = response.tool_calls().map(|(block, call)| (block, call.clone())).collect();
        self.last = response;
    }

    /// Adds the events of a result. Ids need not be unique: a result belongs to the first call with its id that has none.
    fn result(&mut self, result: Option<&ToolResult>) {
        let Some(result) = result else { return };
        let place = self.open.iter().position(|(_, call)| call.id == result.call_id);
        let Some((block, call)) = place.map(|place| self.open.remove(place)) else { return };
        let started = ToolEventKind::Started { arguments: call.arguments.into() };
        let not_started = |reason| vec![ToolEventKind::NotStarted { reason, result: result.clone() }];
        let kinds = match (result.is_denied, result.is_error) {
            (true, _) => not_started(NotStartedReason::Denied),
            // The store does not tell failed calls from those that never began, and clients show both alike.
            (false, true) => not_started(NotStartedReason::Other),
            (false, false) => vec![started, ToolEventKind::Finished(result.clone())],
        };
        let event = |kind| ToolEvent::new(block, call.id.clone(), call.name.clone(), kind);
        self.chunks.extend(kinds.into_iter().map(|kind| Chunk::Tool(Box::new(event(kind)))));
    }
}

/// Returns the round of an answer, by its place among the answers of its turn. The round of the last one is the stored one,
/// which its approvals name. Text of an answer that broke off follows it.
fn round_of(place: u32, answers: u32, last: Option<u32>) -> u32 {
    let (number, last) = (place.saturating_add(1), last.unwrap_or(answers));
    match number.cmp(&answers) {
        Ordering::Less if number < last => number,
        Ordering::Less => number.saturating_add(1),
        Ordering::Equal => last,
        Ordering::Greater => last.max(answers).saturating_add(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_differ_and_the_last_one_is_the_stored_one() {
        let rounds =
            |answers, last| (0..=answers).map(|place| round_of(place, answers, last)).collect::<Vec<_>>();
        assert_eq!(rounds(0, None), [1]);
        assert_eq!(rounds(2, None), [1, 2, 3]);
        assert_eq!(rounds(2, Some(2)), [1, 2, 3]);
        assert_eq!(rounds(2, Some(5)), [1, 5, 6]);
        assert_eq!(rounds(3, Some(1)), [2, 3, 1, 4]);
    }
}
