//! `WrittenList`: the messages with calls and results as text, kept with the list of messages.

use std::convert::Infallible;

use advisor_core::{ChatRequest, Message, MessageContent, MessageList, Part, Role, Text};

use super::history::TextHistory;

/// The messages of a conversation with its calls and results as text, after a description of the tools.
///
/// It is kept with the list of messages, so a round writes its new messages only.
#[derive(Clone)]
pub(super) struct WrittenList {
    /// The place of the format in the texts of a message.
    slot: usize,
    description: Text,
    /// The messages before `results`.
    before: MessageList,
    /// The last results. They are one message, together with what the user says next.
    results: Vec<Message>,
    /// All messages, once the results are written.
    all: Option<MessageList>,
}

impl WrittenList {
    /// Returns the messages as text. The description becomes a system message; an empty one is left out.
    pub(super) fn write(messages: &MessageList, description: &Text, history: TextHistory<'_>) -> MessageList {
        if description.is_empty() && messages.iter_back().all(is_plain) {
            // An unchanged list keeps its cached wire form.
            return messages.clone();
        }
        let slot = history.slot();
        let is_usable = |known: &Self| known.slot == slot && known.description == *description;
        let written = messages.wire_form(is_usable, |known, messages| {
            let (mut written, rest) = known.map_or_else(
                || {
                    let system = messages.iter().take_while(|message| message.role() == Role::System).count();
                    let (system, rest) = messages.split_at_checked(system).unwrap_or_default();
                    (Self::new(slot, description, system), rest)
                },
                |known| (known, messages),
            );
            rest.iter().for_each(|message| written.push(message, history));
            written.write_results(history);
            Ok::<_, Infallible>(written)
        });
        let Ok(written) = written;
        written.all.unwrap_or(written.before)
    }

    fn new(slot: usize, description: &Text, system: &[&Message]) -> Self {
        let system: MessageList = system.iter().copied().cloned().collect();
        let before = ChatRequest::new(system).with_system(description.clone()).messages;
        Self { slot, description: description.clone(), before, results: Vec::new(), all: None }
    }

    fn push(&mut self, message: &Message, history: TextHistory<'_>) {
        if message.tool_result().is_some() {
            self.results.push(message.clone());
            self.all = None;
            return;
        }
        match message.content() {
            MessageContent::User(parts) if !self.results.is_empty() => {
                let mut joined = history.parts_of(&self.results);
                joined.push(Part::from("\n\n"));
                joined.extend(parts.iter().cloned());
                self.before.push(Message::user_parts(joined));
            }
            _ => {
                self.write_results(history);
                self.before = self.all.take().unwrap_or_else(|| self.before.clone());
                self.before.push(history.answer(message));
            }
        }
        self.results.clear();
        self.all = None;
    }

    fn write_results(&mut self, history: TextHistory<'_>) {
        if self.all.is_none() && !self.results.is_empty() {
            let mut all = self.before.clone();
            all.push(history.results(&self.results));
            self.all = Some(all);
        }
    }
}

fn is_plain(message: &Message) -> bool {
    message.tool_result().is_none() && message.tool_calls().next().is_none()
}
