//! `EditedAnswers`: applies the edits to responses, transcripts and error histories.

use std::iter::from_fn;

use message_aggregator::{ChatResponse, Choice, Message, MessageList, ToolCall, ToolResult};

use super::blocks::EditedBlocks;
use super::finish::edited_finish;
use crate::Turn;

/// The answers that an editor changed: each original message with the emitted choice.
#[derive(Default)]
pub(super) struct EditedAnswers(Vec<(Message, Choice)>);

impl EditedAnswers {
    /// Returns the response as emitted, including its transcript. A changed answer is an answer of the turn if the
    /// original is one.
    pub(super) fn edited_response(
        &mut self,
        response: &ChatResponse,
        blocks: &EditedBlocks,
        turn: &Turn,
    ) -> ChatResponse {
        for choice in response.choices() {
            if self.edited(&choice.message).is_none()
                && let Some(mut edited) = blocks.edited_choice(choice, response.round())
            {
                edited.message = turn.replace_answer(&choice.message, edited.message);
                self.0.push((choice.message.clone(), edited));
            }
        }
        if self.0.is_empty() {
            return response.clone();
        }
        let choices = response.choices().iter().map(|choice| match self.edited(&choice.message) {
            Some(edited) => {
                let (message, ids) = (edited.message.clone(), edited.block_ids.clone());
                let finish = edited_finish(choice, &message);
                Choice::new(choice.number, message, ids, finish)
            }
            None => choice.clone(),
        });
        let transcript = self.edited_messages(response.transcript());
        response.clone().with_choices(choices.collect()).with_transcript(transcript)
    }

    /// Returns the messages with every answer as emitted. Changed answers that have become empty are left out, and
    /// so are results of removed calls. A call that was added to an answer and never ran has an error result.
    pub(super) fn edited_messages(&self, messages: &MessageList) -> MessageList {
        let mut list = MessageList::new();
        let mut messages = messages.iter().peekable();
        while let Some(message) = messages.next() {
            let Some(Choice { message: edited, .. }) = self.edited(message) else {
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

    fn edited(&self, original: &Message) -> Option<&Choice> {
        self.0.iter().find(|(message, _)| message.is_same(original)).map(|(_, edited)| edited)
    }
}

/// Returns the result of a call that an editor outside the tool loop added to an answer.
fn not_run(call: &ToolCall) -> Message {
    Message::tool(ToolResult::error(call, "not started: the call was added outside the tool loop"))
}
