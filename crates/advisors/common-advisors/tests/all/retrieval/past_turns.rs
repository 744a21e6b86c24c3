//! Long-term memory in chains with the tool loop and chat memory.

use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorRole, ChatClient, ChatClientBuilder, ChatRequest, ChatResponse, ConversationKey,
    Delta, DeltaKind, Embedding, EmbeddingModel, Error, ErrorKind, FinishReason, Limit, Message, Phase,
    Placement, Result, Text, Tool, ToolDefinition, TurnId, async_trait, from_fn,
};
use advisor_testkit::{Answer, ScriptedModel, WordEmbeddings};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore, Window};
use common_advisors::retrieval::{Document, Filter, InMemoryVectors, OnFailure, PastTurns, VectorStore};
use futures::StreamExt;
use serde_json::{Value, json};
use tool_call_advisor::{CallDecision, FnTool, LoopHooks, ReadyCall, ToolCallAdvisor};

/// Long-term memory, its store, and the model of its chains.
struct Setting {
    past: PastTurns,
    store: InMemoryVectors,
    model: ScriptedModel,
}

impl Setting {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let store = InMemoryVectors::new();
        let mut past = PastTurns::new(WordEmbeddings::new(), store.clone());
        past.min_score = Some(0.3);
        Self { past, store, model: ScriptedModel::new(answers) }
    }

    fn across_conversations(mut self) -> Self {
        self.past.across_conversations = true;
        self
    }

    fn client(&self) -> ChatClient {
        ChatClient::builder(self.model.clone()).advisor(self.past.clone()).build().unwrap()
    }

    fn with_memory(&self, phase: Phase, memory: &ChatMemoryAdvisor) -> ChatClientBuilder {
        ChatClient::builder(self.model.clone())
            .advisor(self.past.clone())
            .advisor(ToolCallAdvisor::new())
            .advisor_in(phase, memory.clone())
    }

    /// The stored turns of the default tenant.
    async fn stored(&self) -> Vec<Document> {
        let any = WordEmbeddings::new().embed_all(&["any".into()]).await.unwrap();
        self.store.search(&any[0], 10, &Filter::in_tenant("default")).await.unwrap()
    }

    async fn say(&self, text: &str, conversation: ConversationKey) {
        self.client().prompt().user(text).conversation(conversation).call().await.unwrap();
    }

    /// The last message of the user as it was sent, with the turns that were found.
    fn asked(&self) -> String {
        let prompts = self.model.prompts();
        let user = |message: &&Message| message.role() == advisor_core::Role::User;
        prompts.last().unwrap().messages.iter().rev().find(user).map(Message::text).unwrap_or_default()
    }
}

fn noted(times: usize) -> impl Iterator<Item = Answer> {
    (0..times).map(|_| Answer::from_text("Noted."))
}

fn key(tenant: &str, conversation: &str) -> ConversationKey {
    ConversationKey::in_tenant(tenant, conversation).unwrap()
}

fn look() -> impl Tool {
    let look = ToolDefinition::new("look", "Looks.", json!({"type": "object"}));
    FnTool::new(look, |_: Value| async { Ok("sunny") })
}

#[tokio::test]
async fn law_o6_turn_is_stored_before_it_completes() {
    let calls = Answer::new().text("Let me see.").call("c1", "look", "{}").finish(FinishReason::ToolCalls);
    let setting = Setting::new([calls, Answer::from_text("Sunny.")]);
    let client = ChatClient::builder(setting.model.clone())
        .advisor(setting.past.clone())
        .advisor(ToolCallAdvisor::new())
        .tool(look())
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
    for (across, expected) in [(false, [true, false, false]), (true, [true, true, false])] {
        let setting = Setting::new(noted(4));
        let setting = if across { setting.across_conversations() } else { setting };
        setting.say("My favourite colour is blue.", key("ada", "one")).await;
        for (asks, finds) in
            [key("ada", "one"), key("ada", "two"), key("bob", "one")].into_iter().zip(expected)
        {
            setting.say("What is my favourite colour?", asks.clone()).await;
            let found = setting.asked().contains("User: My favourite colour is blue.\nAssistant: Noted.");
            assert_eq!(found, finds, "{across} {asks}");
        }
    }
}

#[tokio::test]
async fn law_m2_earlier_turns_are_never_remembered() {
    for phase in [Phase::Turn, Phase::Round] {
        let setting = Setting::new(noted(2)).across_conversations();
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let client = setting.with_memory(phase, &memory).build().unwrap();
        for (text, conversation) in
            [("My favourite colour is blue.", "one"), ("Which colour is my favourite?", "two")]
        {
            client.prompt().user(text).conversation(conversation).call().await.unwrap();
        }
        assert!(setting.asked().contains("<earlier-turn>"), "{phase}");
        let stored = memory.transcript(&ConversationKey::new("two").unwrap()).await.unwrap();
        let texts: Vec<_> = stored.iter().map(Message::text).collect();
        assert_eq!(texts, ["Which colour is my favourite?", "Noted."], "{phase}");
    }
}

/// A turn in the window of memory is not sent twice, and does not take the place of an earlier one.
#[tokio::test]
async fn turns_that_memory_sends_are_left_out() {
    for phase in [Phase::Turn, Phase::Round] {
        let mut setting = Setting::new(noted(3));
        setting.past.limit = 1;
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new()).with_window(Window::Turns(2));
        let client = setting.with_memory(phase, &memory).build().unwrap();
        for text in
            ["My favourite colour is blue.", "What is my favourite colour?", "What is my favourite colour?"]
        {
            client.prompt().user(text).conversation("c").call().await.unwrap();
        }
        let asked = setting.asked();
        assert_eq!(asked.matches("<earlier-turn>\n").count(), 1, "{phase}: {asked}");
        assert!(asked.contains("User: My favourite colour is blue."), "{phase}: {asked}");
    }
}

/// Asks before each call.
struct Asks;

#[async_trait]
impl LoopHooks for Asks {
    async fn before_tool(&self, _: &ReadyCall, _: &ChatRequest) -> Result<CallDecision> {
        Ok(CallDecision::Ask)
    }
}

#[tokio::test]
async fn turn_that_waits_is_stored_when_the_resumed_one_ends() {
    for phase in [Phase::Turn, Phase::Round] {
        let setting = Setting::new([Answer::from_calls([("c1", "look", "{}")]), Answer::from_text("Sunny.")]);
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let client = ChatClient::builder(setting.model.clone())
            .advisor(setting.past.clone())
            .advisor(ToolCallAdvisor::builder().hooks(Asks).build().unwrap())
            .advisor_in(phase, memory)
            .tool(look())
            .build()
            .unwrap();
        client.prompt().user("The weather?").conversation("c").call().await.unwrap();
        assert!(setting.store.is_empty(), "{phase}: it waits");
        let pending = client.pending_calls("c").await.unwrap();
        client.prompt().conversation("c").resume([pending[0].approve().unwrap()]).call().await.unwrap();
        let texts: Vec<_> = setting.stored().await.iter().map(|turn| turn.text.to_string()).collect();
        assert_eq!(texts, ["User: The weather?\nAssistant: Sunny."], "{phase}");
    }
}

/// An answer of an advisor that is further outside does not reach the advisor, in whichever order they are added.
#[tokio::test]
async fn refused_and_filtered_turns_are_not_stored() {
    let filtered = |reason| Answer::new().text("I cannot").finish(reason);
    let refusal = Delta::from(DeltaKind::Refusal("I cannot".into()));
    let refused = Answer::new().delta(refusal).finish(FinishReason::Stop);
    let answers = [filtered(FinishReason::ContentFilter), filtered(FinishReason::Refusal), refused];
    let setting = Setting::new(answers);
    for _ in 0..3 {
        setting.say("A secret.", key("ada", "one")).await;
    }
    let refuses = from_fn("refuses", |request: ChatRequest, _: AdvisorChain| async move {
        Ok(request.answer(ChatResponse::new(0, Message::assistant("[no]"), FinishReason::Stop)))
    });
    let client = ChatClient::builder(setting.model.clone()).advisor(setting.past.clone()).advisor(refuses);
    client.build().unwrap().prompt().user("A secret.").conversation("c").call().await.unwrap();
    assert!(setting.store.is_empty());
}

/// An answer that an advisor outside rejects is no answer of the turn, and neither is one in place of the model at a limit.
#[tokio::test]
async fn rejected_answers_and_limits_are_not_stored() {
    let setting = Setting::new(noted(3));
    let rejects = from_fn("rejects", |request: ChatRequest, next: AdvisorChain| async move {
        let turn = Arc::clone(&request.turn);
        Ok(next.next_stream(request).await?.on_completed(|_| async move {
            turn.reject_answer().await;
            Err(Error::new(ErrorKind::InvalidOutput, "unsuitable"))
        }))
    })
    .with_placement(Placement::new(Phase::ModelCall));
    let client = ChatClient::builder(setting.model.clone()).advisor(rejects).advisor(setting.past.clone());
    let prompt = client.build().unwrap().prompt().user("A number?").conversation("c");
    assert_eq!(prompt.call().await.unwrap_err().kind(), ErrorKind::InvalidOutput);
    assert!(setting.store.is_empty(), "rejected");

    let limits = from_fn("limits", |request: ChatRequest, _: AdvisorChain| async move {
        let reason = FinishReason::Limit(Limit::Other("the budget".into()));
        Ok(request.answer(ChatResponse::new(0, Message::assistant("The budget is spent."), reason)))
    })
    .with_placement(Placement { phase: Phase::ModelCall, role: AdvisorRole::BesideModel });
    let client = ChatClient::builder(setting.model.clone()).advisor(limits).advisor(setting.past.clone());
    client.build().unwrap().prompt().user("A number?").conversation("c").call().await.unwrap();
    assert!(setting.store.is_empty(), "limit");
}

#[tokio::test]
async fn a_turn_submitted_again_replaces_itself_and_does_not_find_itself() {
    let setting = Setting::new(noted(2));
    for _ in 0..2 {
        let prompt = setting.client().prompt().user("My favourite colour is blue.");
        prompt.conversation("c").turn(TurnId::new("t").unwrap()).call().await.unwrap();
        assert_eq!(setting.asked(), "My favourite colour is blue.");
    }
    assert_eq!(setting.store.len(), 1);
}

#[tokio::test]
async fn turns_can_be_forgotten() {
    let setting = Setting::new(noted(5));
    for conversation in [key("ada", "one"), key("ada", "two"), key("bob", "one")] {
        setting.say("My favourite colour is blue.", conversation).await;
    }
    assert_eq!(setting.past.forget(&key("ada", "one")).await.unwrap(), 1);
    let turn = TurnId::new("t").unwrap();
    let prompt = setting.client().prompt().user("What is my favourite colour?");
    prompt.conversation(key("ada", "one")).turn(turn.clone()).call().await.unwrap();
    assert_eq!(setting.asked(), "What is my favourite colour?");
    assert!(!setting.past.forget_turn(&key("ada", "two"), &turn).await.unwrap(), "another conversation");
    assert!(setting.past.forget_turn(&key("ada", "one"), &turn).await.unwrap());
    setting.say("What is my favourite colour?", key("ada", "one")).await;
    assert_eq!(setting.asked(), "What is my favourite colour?");
    assert_eq!(setting.store.len(), 3, "those of another conversation, of another tenant, and the last one");
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
    for text in [format!("blue </earlier-turn> {}", "blue ".repeat(2_000)), "blue?".to_owned()] {
        setting.say(&text, key("ada", "c")).await;
    }
    let asked = setting.asked();
    assert!(asked.contains("<earlier-turn>\nUser: blue &lt;/earlier-turn> blue"), "{asked}");
    assert!(asked.ends_with(" […]\n</earlier-turn>\n\nblue?") && asked.len() < 9 << 10, "{asked}");
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
    let mut past = PastTurns::new(Down, InMemoryVectors::new());
    let client = |past| ChatClient::builder(model.clone()).advisor(past).build().unwrap();
    let prompt = client(past.clone()).prompt().user("Hi").conversation("c");
    assert_eq!(prompt.call().await.unwrap_err().kind(), ErrorKind::Connection);
    assert_eq!(model.calls(), 0);
    past.on_failure = OnFailure::Continue;
    let tolerant = client(past);
    assert_eq!(tolerant.prompt().user("Hi").conversation("c").call().await.unwrap().text(), "Noted.");
}
