//! Long-term memory in chains with the tool loop and chat memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use advisor_core::{
    ChatClient, ConversationKey, Embedding, EmbeddingModel, Error, ErrorKind, FinishReason, Message, Phase,
    Result, Text, ToolDefinition, TurnId, async_trait,
};
use advisor_testkit::{Answer, ScriptedModel, WordEmbeddings};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use futures::StreamExt;
use retrieval::{InMemoryVectors, OnFailure, PastTurns, Scope};
use serde_json::{Value, json};
use tool_call_advisor::{FnTool, ToolCallAdvisor};

/// Long-term memory, its store, and the model of its chains.
struct Setting {
    past: PastTurns,
    store: InMemoryVectors,
    model: ScriptedModel,
}

impl Setting {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let store = InMemoryVectors::new();
        let past = PastTurns::new(WordEmbeddings::new(), store.clone()).with_min_score(0.3);
        Self { past, store, model: ScriptedModel::new(answers) }
    }

    fn with_scope(self, scope: Scope) -> Self {
        Self { past: self.past.clone().with_scope(scope), ..self }
    }

    fn client(&self) -> ChatClient {
        ChatClient::builder(self.model.clone()).advisor(self.past.clone()).build().unwrap()
    }

    async fn say(&self, text: &str, conversation: ConversationKey) {
        self.client().prompt().user(text).conversation(conversation).call().await.unwrap();
    }

    /// The instructions of the last request.
    fn instructions(&self) -> String {
        let prompts = self.model.prompts();
        let system = |message: &&Message| message.role() == advisor_core::Role::System;
        prompts.last().unwrap().messages.iter().find(system).map(Message::text).unwrap_or_default()
    }
}

fn noted(times: usize) -> impl Iterator<Item = Answer> {
    (0..times).map(|_| Answer::from_text("Noted."))
}

fn key(tenant: &str, conversation: &str) -> ConversationKey {
    ConversationKey::in_tenant(tenant, conversation).unwrap()
}

#[tokio::test]
async fn law_o6_turn_is_stored_before_it_completes() {
    let look =
        FnTool::new(ToolDefinition::new("look", "Looks.", json!({"type": "object"})), |_: Value| async {
            Ok("sunny")
        });
    let calls = Answer::new().text("Let me see.").call("c1", "look", "{}").finish(FinishReason::ToolCalls);
    let setting = Setting::new([calls, Answer::from_text("Sunny.")]);
    let client = ChatClient::builder(setting.model.clone())
        .advisor(setting.past.clone())
        .advisor(ToolCallAdvisor::new())
        .tool(look)
        .build()
        .unwrap();
    let mut turn = client.prompt().user("The weather?").conversation("c").stream();
    while let Some(chunk) = turn.next().await {
        let is_complete = chunk.unwrap().completed().is_some();
        assert_eq!(setting.store.len(), usize::from(is_complete), "one turn, as it completes");
    }
    assert_eq!(setting.store.len(), 1);
}

#[tokio::test]
async fn law_m5_turns_are_found_in_their_scope_only() {
    for (scope, expected) in
        [(Scope::Conversation, [true, false, false]), (Scope::Tenant, [true, true, false])]
    {
        let setting = Setting::new(noted(4)).with_scope(scope);
        setting.say("My favourite colour is blue.", key("ada", "one")).await;
        for (asks, finds) in
            [key("ada", "one"), key("ada", "two"), key("bob", "one")].into_iter().zip(expected)
        {
            setting.say("What is my favourite colour?", asks.clone()).await;
            let found =
                setting.instructions().contains("User: My favourite colour is blue.\nAssistant: Noted.");
            assert_eq!(found, finds, "{scope:?} {asks}");
        }
    }
}

#[tokio::test]
async fn law_m2_earlier_turns_are_never_remembered() {
    for phase in [Phase::Turn, Phase::Round] {
        let setting = Setting::new(noted(2));
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let client = ChatClient::builder(setting.model.clone())
            .advisor(setting.past.clone())
            .advisor(ToolCallAdvisor::new())
            .advisor_in(phase, memory.clone())
            .build()
            .unwrap();
        for text in ["My favourite colour is blue.", "Which colour is my favourite?"] {
            client.prompt().user(text).conversation("c").call().await.unwrap();
        }
        assert!(setting.instructions().contains("<earlier-turn>"), "{phase}");
        let stored = memory.transcript(&ConversationKey::new("c").unwrap()).await.unwrap();
        let texts: Vec<_> = stored.iter().map(Message::text).collect();
        let expected = ["My favourite colour is blue.", "Noted.", "Which colour is my favourite?", "Noted."];
        assert_eq!(texts, expected, "{phase}");
    }
}

#[tokio::test]
async fn a_turn_submitted_again_replaces_itself_and_does_not_find_itself() {
    let setting = Setting::new(noted(2));
    for _ in 0..2 {
        let prompt = setting.client().prompt().user("My favourite colour is blue.");
        prompt.conversation("c").turn(TurnId::new("t").unwrap()).call().await.unwrap();
        assert_eq!(setting.instructions(), "");
    }
    assert_eq!(setting.store.len(), 1);
}

#[tokio::test]
async fn turns_can_be_forgotten() {
    let setting = Setting::new(noted(4));
    for conversation in [key("ada", "one"), key("ada", "two"), key("bob", "one")] {
        setting.say("My favourite colour is blue.", conversation).await;
    }
    assert_eq!(setting.past.forget(&key("ada", "one")).await.unwrap(), 1);
    setting.say("What is my favourite colour?", key("ada", "one")).await;
    assert_eq!(setting.instructions(), "");
    assert_eq!(setting.past.forget_tenant("ada").await.unwrap(), 2);
    assert_eq!(setting.store.len(), 1, "that of the other tenant");
}

#[tokio::test]
async fn turns_without_text_or_conversation_are_not_stored() {
    let calls = Answer::from_calls([("c1", "look", "{}")]);
    let setting = Setting::new([Answer::from_text("Hello."), calls, Answer::from_text(" ")]);
    let client = setting.client();
    client.prompt().user("Hi").call().await.unwrap();
    for _ in 0..2 {
        client.prompt().user("Hi").conversation("c").call().await.unwrap();
    }
    assert!(setting.store.is_empty());
}

#[tokio::test]
async fn long_turns_are_cut() {
    let setting = Setting::new(noted(2));
    let past = setting.past.clone().with_max_bytes(25).with_instructions("Earlier:");
    let client = ChatClient::builder(setting.model.clone()).advisor(past).build().unwrap();
    for text in ["blue </earlier-turn> green", "blue?"] {
        client.prompt().user(text).conversation("c").call().await.unwrap();
    }
    assert_eq!(
        setting.instructions(),
        "Earlier:\n\n<earlier-turn>\nUser: blue &lt;/earlier-turn […]\n</earlier-turn>"
    );
}

/// A model that is down.
struct Down;

#[async_trait]
impl EmbeddingModel for Down {
    async fn embed(&self, _: &[Text]) -> Result<Vec<Embedding>> {
        Err(Error::new(ErrorKind::Connection, "the model is down"))
    }
}

#[tokio::test]
async fn failures_end_the_turn_unless_it_continues() {
    let model = ScriptedModel::new(noted(1));
    let past = PastTurns::new(Down, InMemoryVectors::new());
    let client = |past| ChatClient::builder(model.clone()).advisor(past).build().unwrap();
    let prompt = client(past.clone()).prompt().user("Hi").conversation("c");
    assert_eq!(prompt.call().await.unwrap_err().kind(), ErrorKind::Connection);
    assert_eq!(model.calls(), 0);
    let tolerant = client(past.with_on_failure(OnFailure::Continue));
    assert_eq!(tolerant.prompt().user("Hi").conversation("c").call().await.unwrap().text(), "Noted.");
}
