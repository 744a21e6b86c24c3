use message_aggregator::{ChatResponse, Choice, Message, MessageContent, MessageList};

use super::blocks::EditedBlocks;

/// The answers that an editor changed: each original message with the emitted choice.
#[derive(Default)]
pub(super) struct EditedAnswers(Vec<(Message, Choice)>);

impl EditedAnswers {
    /// Returns the response as emitted, including its transcript.
    pub(super) fn edited_response(&mut self, response: &ChatResponse, blocks: &EditedBlocks) -> ChatResponse {
        for choice in response.choices() {
            if self.edited(&choice.message).is_none()
                && let Some(edited) = blocks.edited_choice(choice)
            {
                self.0.push((choice.message.clone(), edited));
            }
        }
        if self.0.is_empty() {
            return response.clone();
        }
        let choices = response.choices().iter().map(|choice| match self.edited(&choice.message) {
            Some(edited) => {
                let (message, ids) = (edited.message.clone(), edited.block_ids.clone());
                Choice::new(choice.number, message, ids, choice.finish.clone())
            }
            None => choice.clone(),
        });
        let transcript = self.edited_messages(response.transcript());
        response.clone().with_choices(choices.collect()).with_transcript(transcript)
    }

    /// Returns the messages with every answer as emitted. Changed answers that have become empty are left out, and
    /// so are results of removed calls.
    pub(super) fn edited_messages(&self, messages: &MessageList) -> MessageList {
        let mut list = MessageList::new();
        // The changed answer that the following results belong to, if any.
        let mut changed: Option<&Message> = None;
        for message in messages {
            match message.content() {
                MessageContent::Assistant(_) => {
                    changed = self.edited(message).map(|choice| &choice.message);
                    let told = changed.unwrap_or(message);
                    if changed.is_none() || !told.is_empty_answer() {
                        list.push(told.clone());
                    }
                }
                MessageContent::Tool(result)
                    if changed
                        .is_some_and(|answer| answer.tool_calls().all(|call| call.id != result.call_id)) => {}
                _ => list.push(message.clone()),
            }
        }
        list
    }

    fn edited(&self, original: &Message) -> Option<&Choice> {
        self.0.iter().find(|(message, _)| message.is_same(original)).map(|(_, edited)| edited)
    }
}
