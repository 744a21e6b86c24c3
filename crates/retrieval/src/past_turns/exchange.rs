//! `RunningTurn`, the text and id of a stored turn, and the turns that a request already has.

use advisor_core::{ChatRequest, ConversationKey, Message, MessageList, Role, Text, TurnId};

use crate::{Document, Filter, prompt};

/// The names of a stored turn's properties.
const CONVERSATION: &str = "conversation";
pub(super) const TURN: &str = "turn";

/// Selects the turns of a conversation.
pub(super) fn in_conversation(key: &ConversationKey) -> Filter {
    Filter::in_tenant(key.tenant()).with_equal(CONVERSATION, key.conversation())
}

/// Selects a turn.
pub(super) fn filter_of(key: &ConversationKey, turn: &TurnId) -> Filter {
    in_conversation(key).with_equal(TURN, &*turn_of(key, turn))
}

/// Returns the id of a stored turn. Turns of two conversations may have one id.
fn turn_of(conversation: &ConversationKey, turn: &TurnId) -> Text {
    format!("{conversation}/{}", turn.as_str()).into()
}

/// Returns the text that is stored of a turn.
pub(super) fn text_of(asked: &str, answer: &str, max_bytes: usize) -> String {
    prompt::cut(&format!("User: {asked}\nAssistant: {answer}"), max_bytes).to_string()
}

/// Returns the stored texts of the turns that messages have in full: each last text of a user, and the last answer to it.
pub(super) fn sent(messages: &MessageList, max_bytes: usize) -> Vec<String> {
    let mut texts = Vec::new();
    let (mut asked, mut answer) = (None, None);
    for message in messages.iter().filter(|message| !message.is_ephemeral()) {
        match message.role() {
            Role::User => {
                texts.extend(exchange(asked.replace(message), answer.take(), max_bytes));
            }
            Role::Assistant => answer = Some(message),
            _ => {}
        }
    }
    texts.extend(exchange(asked, answer, max_bytes));
    texts
}

fn exchange(asked: Option<&Message>, answer: Option<&Message>, max_bytes: usize) -> Option<String> {
    Some(text_of(&asked?.text(), &answer?.text(), max_bytes))
}

/// The turn that is running, and the text of its user.
pub(super) struct RunningTurn {
    pub(super) conversation: ConversationKey,
    id: TurnId,
    pub(super) asked: Text,
}

impl RunningTurn {
    /// Returns the turn of a request, if it is part of a conversation and has a text of the user.
    pub(super) fn of(request: &ChatRequest) -> Option<Self> {
        let asked = request.last_user().map(Message::text).filter(|text| !text.trim().is_empty())?;
        let (conversation, id) = (request.conversation.clone()?, request.turn.id().clone());
        Some(Self { conversation, id, asked: asked.into() })
    }

    /// Selects the turn.
    pub(super) fn filter(&self) -> Filter {
        filter_of(&self.conversation, &self.id)
    }

    pub(super) fn document_id(&self) -> Text {
        turn_of(&self.conversation, &self.id)
    }

    /// Returns the document of the turn with this text.
    pub(super) fn document(&self, text: Text) -> Document {
        Document::new(self.document_id(), text)
            .with_metadata(CONVERSATION, self.conversation.conversation())
            .with_metadata(TURN, &*self.document_id())
    }
}
