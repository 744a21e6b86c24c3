//! `EditedAnswers`: applies the edits to responses, transcripts and error histories.

use std::iter::from_fn;

use message_aggregator::{ChatResponse, Message, MessageList, ToolCall, ToolResult};

use super::blocks::EditedBlocks;
use super::finish::edited_finish;
use crate::Turn;

/// The answers that an editor changed: each original message with the emitted one.
#[derive(Default)]
pub(super) struct EditedAnswers(Vec<(Message, ChatResponse)>);

impl EditedAnswers {
    /// Returns the response as emitted, including its transcript. A changed answer is an answer of the turn if the
    /// original is one.
    pub(super) fn edited_response(
        &mut self,
        response: &ChatResponse,
        blocks: &EditedBlocks,
        turn: &Turn,
    ) -> ChatResponse {
        let original = response.message();
        if self.edited(original).is_none()
            && let Some(edited) = blocks.edited_answer(response)
        {
            let message = turn.replace_answer(original, edited.message().clone());
            self.0.push((original.clone(), edited.with_message(message)));
        }
        if self.0.is_empty() {
            return response.clone();
        }
        let transcript = self.edited_messages(response.transcript());
        match self.edited(original) {
            Some(edited) => {
                let blocks = edited.blocks().map(|(id, block)| (id, block.clone()));
                let finish = edited_finish(response, edited.message());
                let response = response.clone().with_blocks(blocks).with_message(edited.message().clone());
                response.with_finish(finish)
            }
            None => response.clone(),
        }
        .with_transcript(transcript)
    }

    /// Returns the messages with every answer as emitted. Changed answers that have become empty are left out, and
    /// so are results of removed calls. A call that was added to an answer and never ran has an error result.
    pub(super) fn edited_messages(&self, messages: &MessageList) -> MessageList {
        let mut list = MessageList::new();
        let mut messages = messages.iter().peekable();
        while let Some(message) = messages.next() {
            let Some(edited) = self.edited(message).map(ChatResponse::message) else {
                list.push(message.clone());
                continue;
            };
            if !edited.is_empty_answer() {
                list.push(edited.clone());
            }
            let results: Vec<_> =
                from_fn(|| messages.next_if(|message| message.tool_result().is_some())).collect();
            // The calls of the last answer are for the caller.
            let is_last = results.is_empty() && messages.peek().is_none();
            for call in edited.tool_calls().filter(|_| !is_last) {
                let is_of_call =
                    |result: &&&Message| result.tool_result().is_some_and(|result| result.call_id == call.id);
                list.push(
                    results.iter().find(is_of_call).map_or_else(|| not_run(call), |result| (*result).clone()),
                );
            }
        }
        list
    }

    fn edited(&self, original: &Message) -> Option<&ChatResponse> {
        self.0.iter().find(|(message, _)| message.is_same(original)).map(|(_, edited)| edited)
    }
}

/// Returns the result of a call that an editor outside the tool loop added to an answer.
fn not_run(call: &ToolCall) -> Message {
    Message::tool(ToolResult::error(call, "not started: the call was added outside the tool loop"))
}
