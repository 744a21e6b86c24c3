//! Tests of `chat::commands`.

use std::sync::Arc;

use advisor_chain::memory::ConversationStore;
use advisor_chain::{ChatClient, ChatMemoryAdvisor, ConversationKey, InMemoryStore};
use advisor_testkit::{Answer, ScriptedModel};

use super::super::answer;
use super::super::session::Spent;
use super::super::waits::waits;
use super::*;
use crate::output::{Colours, Output, Place, Style};

const PIPED: Style = Style { place: Place::Elsewhere, colours: Colours::Off };

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
        let model_name = "m".to_owned();
        let spent = Spent::default();
        Self {
            session: Session { client, memory, store, conversation, model: model_name, spent, journal: None },
            model,
        }
    }

    /// Enters a line. Returns what is shown.
    async fn enter(&mut self, line: &str) -> String {
        let (mut answer, mut notes) = (Vec::new(), Vec::new());
        let mut screen = Screen::new(Output::new(&mut answer, PIPED), Output::new(&mut notes, PIPED));
        let next = match read(line) {
            Line::Question(text) => Next::Ask(Box::new(self.session.ask(&text))),
            Line::Command(command) => run(command, &mut self.session, &mut screen).await.unwrap(),
            Line::Hint(hint) => return hint,
        };
        if let Next::Ask(turn) = next {
            answer::show(*turn, std::future::pending(), &mut screen, &mut waits().1, None).await.unwrap();
        }
        String::from_utf8(notes).unwrap() + &String::from_utf8(answer).unwrap()
    }

    /// The texts of the messages that the model was sent last.
    fn sent(&self) -> Vec<String> {
        self.model.prompts().pop().unwrap().messages.iter().map(advisor_chain::Message::text).collect()
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
    assert!(matches!(chat.session.last_question().await.unwrap(), Some(question) if question.text == "c"));
}

#[tokio::test]
async fn conversations_are_begun_listed_opened_and_deleted() {
    let mut chat = Chat::new(["One.", "Two."]);
    chat.enter("a").await;
    assert_eq!(chat.enter("/new").await, "This is conversation chat-2.\n");
    assert_eq!(chat.enter("/history").await, "This conversation has no messages yet.\n");
    chat.enter("b\x1b").await;
    assert_eq!(chat.sent(), ["b\x1b"]);
    assert_eq!(chat.enter("/conversations").await, "  chat         a\n* chat-2       b\\u{1b}\n");
    assert_eq!(chat.enter("/open chat").await, "This is conversation chat. /history shows it.\n");
    assert_eq!(chat.enter("/new").await, "This is conversation chat-3.\n");
    assert_eq!(chat.enter("/delete chat-2").await, "Conversation chat-2 is deleted.\n");
    let absent = "There is no conversation chat-2; /conversations lists them.\n";
    assert_eq!(chat.enter("/open chat-2").await, absent);
    assert_eq!(chat.enter("/delete chat-2").await, absent);
    assert_eq!(chat.enter("/conversations").await, "  chat         a\n");
}

#[tokio::test]
async fn a_saved_conversation_can_be_imported_and_replaces_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("saved.jsonl");
    let mut chat = Chat::new(["One."]);
    chat.enter("a").await;
    let save = format!("/save {}", file.display());
    assert!(chat.enter(&save).await.starts_with("Saved to "));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let saved = std::fs::read(&file).unwrap();
    let other = InMemoryStore::new();
    let imported = advisor_chain::memory::store::import(&other, &saved[..], None).await.unwrap();
    assert_eq!((imported.key, imported.entries), (chat.session.conversation.clone(), 3));
    let (mut answer, mut notes) = (Vec::new(), Vec::new());
    let mut screen = Screen::new(Output::new(&mut answer, PIPED), Output::new(&mut notes, PIPED));
    let again = run(Command::Save(file.clone()), &mut chat.session, &mut screen).await;
    assert!(matches!(again, Err(Failure::Chain(_))));
    assert_eq!(std::fs::read(&file).unwrap(), saved);
}

#[tokio::test]
async fn the_model_changes_for_further_turns() {
    let mut chat = Chat::new(["One.", "Two."]);
    let model = |chat: &Chat| chat.model.prompts().pop().unwrap().options.model.map(|name| name.to_string());
    chat.enter("a").await;
    assert_eq!(model(&chat).as_deref(), Some("m"));
    assert_eq!(chat.enter("/model other").await, "model: other\n");
    chat.enter("b").await;
    assert_eq!(model(&chat).as_deref(), Some("other"));
}

#[tokio::test]
async fn commands_without_a_conversation_say_so() {
    let mut chat = Chat::new([]);
    for (line, shown) in [
        ("/retry", "There is no question in this conversation yet.\n"),
        ("/edit", "There is no question in this conversation yet.\n"),
        ("/conversations", "There are no conversations yet.\n"),
        ("/tools", "The model has no tools.\n"),
        ("/usage", "last turn: unknown tokens in, unknown out\nthis chat: unknown tokens in, unknown out\n"),
    ] {
        assert_eq!(chat.enter(line).await, shown, "{line}");
    }
    assert_eq!(chat.enter("/help").await.lines().count(), parse::COMMANDS.len());
}

#[tokio::test]
async fn a_turn_that_a_crash_cut_is_shown_as_interrupted() {
    use advisor_chain::TurnId;
    use advisor_chain::memory::store::{Batch, BatchKey, NewEntry, Version};
    let mut chat = Chat::new([]);
    let turn = TurnId::new("cut").unwrap();
    let question = NewEntry::new(turn.clone(), advisor_chain::Message::user("a").into());
    let batch = Batch::new(BatchKey::new(turn, 0, "input"), vec![question]);
    chat.session.store.append(&chat.session.conversation, Version::EMPTY, batch).await.unwrap();
    let note = "[the last turn was interrupted before its answer was complete; /retry asks again]\n";
    let history = chat.enter("/history").await;
    assert!(history.contains("> a\n") && history.contains(note), "{history}");
    assert_eq!(
        chat.enter("/open chat").await,
        format!("This is conversation chat. /history shows it.\n{note}")
    );
}
