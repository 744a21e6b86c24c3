//! What memory tells of calls that a turn left to its caller, and that nobody answered.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use advisor_chain::{
    CallerTool, ChatClient, ChatMemoryAdvisor, ConversationKey, ConversationStore, Entry, InMemoryStore,
    Message, NOT_RUN, Phase, Role, SqliteStore, ToolCall, ToolCallAdvisor, ToolDefinition, ToolResult, View,
    WENT_ON, Window, check_transcript, repair,
};
use advisor_testkit::{Answer, ScriptedModel};
use serde_json::json;

/// A process over a store, whose model is asked for a refund and then talks of something else.
struct Process {
    client: ChatClient,
    model: ScriptedModel,
}

impl Process {
    fn new(store: &Arc<dyn ConversationStore>, place: Phase, window: Window, answers: Vec<Answer>) -> Self {
        let model = ScriptedModel::new(answers);
        let refund = CallerTool::new(ToolDefinition::new("refund", "Pays back.", json!({"type": "object"})));
        let memory = ChatMemoryAdvisor::new(Arc::clone(store)).with_window(window);
        let client = ChatClient::builder(model.clone()).advisor(ToolCallAdvisor::new()).tool(refund);
        Self { client: client.advisor_in(place, memory).build().unwrap(), model }
    }

    /// What the request of a turn with this input sends.
    async fn turn(&self, input: Vec<Message>) -> Vec<String> {
        self.client.prompt().messages(input).conversation("c").call().await.unwrap();
        let sent = self.model.prompts().pop().unwrap().messages;
        assert_eq!(check_transcript(&sent), []);
        sent.iter().map(line).collect()
    }
}

fn line(message: &Message) -> String {
    match message.role() {
        Role::Tool => format!("{}: {}", message.tool_result().unwrap().call_id, message.text()),
        _ => message.tool_calls().fold(message.text(), |line, call| format!("{line}({})", call.id)),
    }
}

fn asks(ids: &[&str]) -> Vec<Answer> {
    vec![Answer::of_calls(ids.iter().map(|id| (*id, "refund", "{}")))]
}

fn says(text: &str) -> Vec<Answer> {
    vec![Answer::of_text(text.to_owned())]
}

fn paid(id: &str) -> Message {
    Message::tool(ToolResult::new(&ToolCall::new(id, "refund", ""), vec!["paid".into()]))
}

async fn log(store: &Arc<dyn ConversationStore>) -> Vec<Entry> {
    store.load(&ConversationKey::new("c").unwrap(), View::All).await.unwrap().entries
}

async fn stores() -> (Vec<Arc<dyn ConversationStore>>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteStore::open(folder.path().join("c.sqlite")).await.unwrap();
    (vec![Arc::new(InMemoryStore::new()), Arc::new(file)], folder)
}

const WINDOWS: [Window; 4] = [Window::All, Window::Messages(12), Window::Turns(3), Window::Tokens(500)];

#[tokio::test]
async fn d7_a_call_that_a_user_message_passes_over_is_told_as_not_run() {
    let not_run = format!("1: {NOT_RUN}");
    for window in WINDOWS {
        let mut logs = Vec::new();
        for place in [Phase::Round, Phase::Turn] {
            let (stores, _folder) = stores().await;
            for store in stores {
                let process = |answers| Process::new(&store, place, window, answers);
                process(asks(&["1"])).turn(vec![Message::user("Refund me.")]).await;
                let told = ["Refund me.", "(1)", &not_run, WENT_ON];
                // Another process goes on, and so does one after it.
                let sent = process(says("Hm.")).turn(vec![Message::user("Never mind.")]).await;
                assert_eq!(sent, [&told[..], &["Never mind."]].concat(), "{window:?} {place:?}");
                let sent = process(says("So.")).turn(vec![Message::user("And?")]).await;
                assert_eq!(sent, [&told[..], &["Never mind.", "Hm.", "And?"]].concat(), "and so it stays");
                let log = log(&store).await;
                let repaired: Vec<_> = repair(&log).iter().map(line).collect();
                assert_eq!(repaired, [&told[..], &["Never mind.", "Hm.", "And?", "So."]].concat());
                logs.push(log.into_iter().map(|entry| entry.kind).collect::<Vec<_>>());
            }
        }
        assert!(logs.windows(2).all(|pair| pair[0] == pair[1]), "memory is the same wherever it stands");
    }
}

#[tokio::test]
async fn d7_of_several_calls_those_are_told_as_not_run_that_nobody_answers() {
    for place in [Phase::Round, Phase::Turn] {
        let (stores, _folder) = stores().await;
        for store in stores {
            let process = |answers| Process::new(&store, place, Window::All, answers);
            process(asks(&["1", "2"])).turn(vec![Message::user("Refund me.")]).await;
            let sent = process(says("Done.")).turn(vec![paid("2"), Message::user("Thanks.")]).await;
            let told = ["Refund me.", "(1)(2)", &format!("1: {NOT_RUN}"), "2: paid", "Thanks."];
            assert_eq!(sent, told, "{place:?}");
        }
    }
}
