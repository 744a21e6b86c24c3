//! Tests of `chat::commands`.

use std::sync::Arc;

use advisor_chain::memory::ConversationStore;
use advisor_chain::{ChatClient, ChatMemoryAdvisor, ConversationKey, InMemoryStore};
use advisor_testkit::{Answer, ScriptedModel};

use super::super::turn;
use super::*;
use crate::screen::output::{Output, Style};

/// A chat with a scripted model.
struct Chat {
    session: Session,
    model: ScriptedModel,
}

impl Chat {
    fn new<const N: usize>(answers: [&str; N]) -> Self {
        let model = ScriptedModel::new(answers.map(Answer::from_text));
        let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
        let memory = ChatMemoryAdvisor::new(Arc::clone(&store));
        let client = ChatClient::builder(model.clone()).advisor(memory.clone()).build().unwrap();
        let conversation = ConversationKey::new("chat").unwrap();
        Self { session: Session { client, memory, store, conversation }, model }
    }

    /// Enters a line. Returns what is shown.
    async fn enter(&mut self, line: &str) -> String {
        let (mut answer, mut notes) = (Vec::new(), Vec::new());
        let mut screen =
            Screen::new(Output::new(&mut answer, Style::Piped), Output::new(&mut notes, Style::Piped));
        if let Next::Ask(turn) = run(line, &mut self.session, &mut screen).await.unwrap() {
            turn::show(*turn, std::future::pending(), &mut screen).await.unwrap();
        }
        String::from_utf8(notes).unwrap() + &String::from_utf8(answer).unwrap()
    }

    /// The texts of the messages that the model was sent last.
    fn sent(&self) -> Vec<String> {
        self.model.prompts().pop().unwrap().messages.iter().map(Message::text).collect()
    }
}

#[tokio::test]
async fn retry_and_edit_ask_on_another_branch() {
    let mut chat = Chat::new(["One.", "Two.", "Three.", "Four."]);
    chat.enter("a").await;
    chat.enter("b").await;
    assert_eq!(chat.enter("/retry").await, "> b\nThree.\n");
    assert_eq!(chat.sent(), ["a", "One.", "b"]);
    assert_eq!(chat.enter("/edit c").await, "> c\nFour.\n");
    assert_eq!(chat.sent(), ["a", "One.", "c"]);
    assert_eq!(chat.enter("/history").await, "> a\n> c\nOne.\nFour.\n");
    assert_eq!(chat.session.store.branches(&chat.session.conversation).await.unwrap().len(), 3);
    assert!(matches!(chat.session.last_question().await.unwrap(), Some((_, question)) if question == "c"));
}

#[tokio::test]
async fn another_conversation_is_begun() {
    let mut chat = Chat::new(["One.", "Two."]);
    chat.enter("a").await;
    assert_eq!(chat.enter("/new").await, "This is conversation chat-2.\n");
    assert_eq!(chat.enter("/history").await, "This conversation has no messages yet.\n");
    chat.enter("b").await;
    assert_eq!(chat.sent(), ["b"]);
    assert_eq!(chat.enter("/new").await, "This is conversation chat-3.\n");
}

#[tokio::test]
async fn there_may_be_no_question_to_ask_again() {
    let mut chat = Chat::new([]);
    for line in ["/retry", "/edit a"] {
        assert_eq!(chat.enter(line).await, "There is no question in this conversation yet.\n", "{line}");
    }
    assert_eq!(chat.enter("/help").await.lines().count(), COMMANDS.len());
}

#[tokio::test]
async fn a_turn_that_a_crash_cut_is_shown_as_interrupted() {
    use advisor_chain::TurnId;
    use advisor_chain::memory::store::{Batch, BatchKey, NewEntry, Version};
    let mut chat = Chat::new([]);
    let turn = TurnId::new("cut").unwrap();
    let question = NewEntry::new(turn.clone(), Message::user("a").into());
    let batch = Batch::new(BatchKey::new(turn, 0, "input"), vec![question]);
    chat.session.store.append(&chat.session.conversation, Version::EMPTY, batch).await.unwrap();
    let note = "[the last turn was interrupted before its answer was complete; /retry asks again]\n";
    let history = chat.enter("/history").await;
    assert!(history.contains("> a\n") && history.contains(note), "{history}");
}

#[tokio::test]
async fn a_line_with_a_slash_behind_its_beginning_is_a_question() {
    let mut chat = Chat::new(["One.", "Two."]);
    for line in ["hello /help", " /etc/passwd"] {
        chat.enter(line).await;
        assert_eq!(chat.sent().last().unwrap(), line);
    }
}

#[tokio::test]
async fn a_wrong_command_gets_a_hint() {
    let mut chat = Chat::new([]);
    for (line, part) in [
        ("/hlep\x1b", "There is no command /hlep\\u{1b}; /help"),
        ("/edit", "Usage: /edit TEXT"),
        ("/new one", "Usage: /new"),
        ("/", "There is no command /;"),
    ] {
        let shown = chat.enter(line).await;
        assert!(shown.starts_with(part), "{line}: {shown}");
    }
}
