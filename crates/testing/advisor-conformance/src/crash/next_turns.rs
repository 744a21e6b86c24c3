//! `next_turns_are_valid`: two more turns on any log must work.

#![allow(clippy::unwrap_used, reason = "what does not hold is a panic")]

use std::sync::Arc;

use advisor_core::{ChatClient, ConversationKey, Message};
use advisor_testkit::{Answer, ScriptedModel, validate_transcript};
use chat_memory_advisor::ChatMemoryAdvisor;
use conversation_store::{ConversationStore, ReadRange};

/// Runs two turns with memory in a conversation with any log. Checks that their requests are valid
/// and that their messages are stored.
///
/// # Panics
/// If a request is not valid, or a turn fails or is not stored.
pub async fn next_turns_are_valid(store: Arc<dyn ConversationStore>, key: &ConversationKey) {
    let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
    let model = ScriptedModel::from_fn(|prompt| {
        assert_eq!(validate_transcript(&prompt.messages), []);
        Answer::from_text("yes")
    });
    let client = ChatClient::builder(model).advisor(memory).build().unwrap();
    for text in ["one more", "and another"] {
        client.prompt().user(text).conversation(key.clone()).call().await.unwrap();
        let read = store.load(key, ReadRange::LastTurns(1)).await.unwrap();
        let said = read.entries.iter().filter_map(|entry| entry.kind.as_message()).map(Message::text);
        assert_eq!(said.collect::<Vec<_>>(), [text, "yes"]);
        assert_eq!(read.open_turn, None);
    }
}
